import type { Json, JsonObject } from "./task-client.js";

/** Where Taskferry servers look for the key that makes a retried call the same call. */
export const IDEMPOTENCY_KEY = "taskferry.dev/idempotency-key";

export const CLIENT_INFO = { name: "taskferry-client", version: "0.1.0" };

/** A message's `_meta`, empty if it has none. */
export function meta(message: JsonObject): Readonly<Record<string, Json>> {
  const found = message._meta;
  return typeof found === "object" && found !== null && !Array.isArray(found) ? (found as JsonObject) : {};
}
