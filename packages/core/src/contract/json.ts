/** Anything that survives `JSON.parse(JSON.stringify(value))` unchanged. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;

/** A JSON object. */
export interface JsonObject {
  readonly [key: string]: Json;
}

/** Whether a value is a plain JSON object: not null, not an array. Does not look inside. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * JSON text with object keys in a fixed order, so that equal values are equal bytes:
 * what idempotency hashes and engines that compare inputs byte by byte need.
 */
export function canonicalJson(value: Json): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    isJsonObject(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)))
      : inner,
  );
}
