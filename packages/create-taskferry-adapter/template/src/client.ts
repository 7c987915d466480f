import type { ErrorVerdict, Json } from "@taskferry/core";

/** The engine said no. Its own words are not kept: they may quote an input. */
export class HttpError extends Error {
  override readonly name = "HttpError";

  constructor(
    readonly status: number,
    readonly retryAfterMs: number | undefined,
  ) {
    super(`The engine answered ${status}`);
  }
}

/** Where the engine is. */
export interface Connection {
  readonly url: string;
  readonly token: string;
}

/** One call. @throws HttpError, and what `fetch` throws when the connection breaks or the signal aborts */
export async function call<Answer>(
  { url, token }: Connection,
  method: "GET" | "POST",
  path: string,
  signal: AbortSignal,
  body?: Json,
): Promise<Answer> {
  const response = await fetch(new URL(path, url), {
    method,
    signal,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  if (!response.ok) {
    const seconds = Number(response.headers.get("retry-after") ?? Number.NaN);
    throw new HttpError(response.status, Number.isFinite(seconds) ? seconds * 1000 : undefined);
  }
  return (await response.json()) as Answer;
}

/** What an error means for the call that threw it. `undefined` is `ambiguous`: it may have happened. */
export function explain(error: unknown): ErrorVerdict | undefined {
  if (!(error instanceof HttpError)) return undefined;
  const { status, retryAfterMs } = error;
  const code = `Http${status}`;
  if (status === 429) return { kind: "retry", code, ...(retryAfterMs !== undefined && { retryAfterMs }) };
  if (status === 404 || status === 410) return { kind: "gone", code };
  if (status >= 400 && status < 500) return { kind: "rejected", code };
  return { kind: "ambiguous", code };
}
