/** One framed 2026-07-28 request over Streamable HTTP. */
import type { RawClientDispatch } from "@modelcontextprotocol/ext-tasks/client";

interface Framed {
  readonly method: string;
  readonly params?: { readonly name?: string; readonly uri?: string; readonly taskId?: string };
}

/** @returns the response's result or error @throws if the server cannot be reached, or answers no JSON-RPC */
export async function postFramed(
  url: URL,
  headers: Readonly<Record<string, string>>,
  request: unknown,
  signal: AbortSignal | undefined,
): ReturnType<RawClientDispatch> {
  const framed = request as Framed;
  const name = framed.params?.name ?? framed.params?.uri ?? framed.params?.taskId;
  // Set, not added: the headers that are handed in may name the task already.
  const all = new Headers(headers);
  all.set("content-type", "application/json");
  all.set("accept", "application/json, text/event-stream");
  all.set("mcp-protocol-version", "2026-07-28");
  all.set("mcp-method", framed.method);
  if (name !== undefined) all.set("mcp-name", name);
  const response = await fetch(url, {
    method: "POST",
    headers: all,
    body: JSON.stringify({ jsonrpc: "2.0", id: crypto.randomUUID(), ...framed }),
    ...(signal !== undefined && { signal }),
  });
  const message = lastMessage(await response.text());
  if (message === undefined)
    throw new Error(`${framed.method}: the server answered ${response.status} without a message`);
  const reply = JSON.parse(message);
  return "error" in reply ? { kind: "error", error: reply.error } : { kind: "result", result: reply.result };
}

/** The body itself, or the last message of an event stream. */
function lastMessage(body: string): string | undefined {
  if (body.startsWith("{")) return body;
  return body
    .split("\n")
    .filter((line) => line.startsWith("data:"))
    .at(-1)
    ?.slice("data:".length);
}
