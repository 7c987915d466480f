import type { ErrorVerdict, Json, JsonObject } from "@taskferry/core";

/** An answer of Restate that is not a success. */
export class RestateError extends Error {
  override readonly name = "RestateError";

  constructor(
    readonly status: number,
    readonly retryAfterMs: number | undefined,
    /** What Restate says. May quote the input, so that it is not shown. */
    readonly said: string,
  ) {
    super(`Restate answered ${status}`);
  }
}

/** One server's ingress or admin API. */
export interface Api {
  readonly url: string;
  readonly token: string | undefined;
}

/** @returns the body as JSON; `undefined` for an empty one. @throws RestateError, and what `fetch` throws */
export async function call(
  { url, token }: Api,
  method: "GET" | "POST" | "PATCH",
  path: string,
  signal: AbortSignal,
  body?: Json,
): Promise<Json | undefined> {
  const response = await fetch(new URL(path, url), {
    method,
    signal,
    headers: {
      accept: "application/json",
      ...(body !== undefined && { "content-type": "application/json" }),
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new RestateError(response.status, retryAfterMs(response.headers), text);
  return text === "" ? undefined : (JSON.parse(text) as Json);
}

/** The rows of a query. Values come from the server or are checked to be quotable: see {@link quoted}. */
export async function query(api: Api, sql: string, signal: AbortSignal): Promise<readonly JsonObject[]> {
  const answer = (await call(api, "POST", "/query", signal, { query: sql })) as { rows: JsonObject[] };
  return answer.rows;
}

/** A SQL string. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** What an error means for the call that threw it. */
export function explain(error: unknown): ErrorVerdict | undefined {
  if (!(error instanceof RestateError)) return undefined; // A broken connection: it may have happened.
  const { status } = error;
  const code = `Restate.${status}`;
  const asked = error.retryAfterMs === undefined ? {} : { retryAfterMs: error.retryAfterMs };
  if (status === 429) return { kind: "retry", code, message: "Restate is throttling", ...asked };
  if (status === 503) return { kind: "ambiguous", code, message: "Restate is not available", ...asked };
  if (status >= 400 && status < 500) return { kind: "rejected", code, message: `Restate refused: ${status}` };
  return { kind: "ambiguous", code, message: `Restate answered ${status}` };
}

function retryAfterMs(headers: Headers): number | undefined {
  const seconds = Number(headers.get("retry-after") ?? Number.NaN);
  return Number.isFinite(seconds) ? Math.ceil(seconds * 1000) : undefined;
}
