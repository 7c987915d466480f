/** A listen for tasks over HTTP: the SDK entry's event stream, with the relay in between. */
import type { McpHandlerRequestOptions, McpHttpHandler } from "@modelcontextprotocol/server";
import type { JsonObject } from "../contract/json.js";
import type { Owner } from "../contract/owner.js";
import type { TaskEngine } from "../engine/engine.js";
import { toJsonRpcError } from "../wire/codec.js";
import { ListenRelay } from "./listen.js";

/** Serves one listen. Whatever the entry refuses is refused in its words. */
export async function listenOverHttp(
  entry: Pick<McpHttpHandler, "fetch">,
  request: Request,
  message: JsonObject,
  engine: TaskEngine,
  owner: Owner,
  options: McpHandlerRequestOptions,
): Promise<Response> {
  const encoder = new TextEncoder();
  const decoder = new TextDecoder();
  let out: ReadableStreamDefaultController<Uint8Array> | undefined;
  const write = (frame: string) => {
    try {
      out?.enqueue(encoder.encode(frame));
    } catch {
      // The client has gone; cancel() below ends the relay.
    }
  };
  const relay = new ListenRelay(message, engine, owner, (note) => write(sseFrame(note)));
  const response = await entry.fetch(request, { ...options, parsedBody: relay.forEntry() });
  const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
  if (!isStream || response.body === null) return response;
  const reader = response.body.getReader();
  if (relay.refusal !== undefined) {
    await reader.cancel().catch(() => {});
    return Response.json(relay.refusal, { status: 400 });
  }
  // A stream is a request that waits: one owner may not take them all.
  let release: () => void;
  try {
    release = engine.hold(owner);
  } catch (error) {
    await reader.cancel().catch(() => {});
    const { code, message: why, data } = toJsonRpcError(error, "subscriptions/listen");
    return Response.json({
      jsonrpc: "2.0",
      id: message.id ?? null,
      error: { code, message: why, ...(data && { data }) },
    });
  }
  const end = () => {
    relay.end();
    release();
  };

  const body = new ReadableStream<Uint8Array>({
    async start(controller) {
      out = controller;
      let rest = "";
      try {
        for (;;) {
          const { done, value } = await reader.read();
          if (done) break;
          rest += decoder.decode(value, { stream: true });
          const frames = rest.split("\n\n");
          rest = frames.pop() ?? "";
          for (const frame of frames) await relayFrame(frame, relay, write);
        }
        controller.close();
      } catch {
        // Closed from either side.
      } finally {
        end();
      }
    },
    cancel(reason) {
      end();
      return reader.cancel(reason);
    },
  });
  return new Response(body, { status: response.status, headers: response.headers });
}

async function relayFrame(frame: string, relay: ListenRelay, write: (frame: string) => void): Promise<void> {
  const data = frame
    .split("\n")
    .filter((line) => line.startsWith("data:"))
    .map((line) => line.slice(5).trimStart())
    .join("\n");
  // Comment frames keep the connection alive.
  if (data === "") return write(`${frame}\n\n`);
  const message = JSON.parse(data) as JsonObject;
  const relayed = await relay.relay(message);
  if (relayed === undefined) return;
  write(sseFrame(relayed));
  if (message.method === "notifications/subscriptions/acknowledged") relay.begin();
}

function sseFrame(message: JsonObject): string {
  return `event: message\ndata: ${JSON.stringify(message)}\n\n`;
}
