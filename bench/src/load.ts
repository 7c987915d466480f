/** A load generator that costs little: fixed requests over keep-alive sockets, answers counted by their length. */
import { connect, type Socket } from "node:net";

export interface Load {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Sends requests over `connections` sockets, one at a time on each, and takes the times. */
export async function load(
  port: number,
  request: (connection: number) => string,
  options: { readonly connections: number; readonly forMs: number },
): Promise<Load> {
  const times: number[] = [];
  const started = performance.now();
  const until = started + options.forMs;
  await Promise.all(
    Array.from({ length: options.connections }, (_, i) => drive(port, request(i), until, times)),
  );
  const sorted = times.sort((a, b) => a - b);
  const at = (share: number) => sorted[Math.floor(sorted.length * share)] ?? 0;
  return {
    perSecond: (times.length / (performance.now() - started)) * 1000,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
  };
}

function drive(port: number, request: string, until: number, times: number[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket: Socket = connect({ port, host: "127.0.0.1", noDelay: true });
    const bytes = Buffer.from(request, "latin1");
    let sent = 0;
    let buffered = "";
    const next = () => {
      if (performance.now() >= until) {
        socket.destroy();
        resolve();
        return;
      }
      sent = performance.now();
      socket.write(bytes);
    };
    socket.on("connect", next);
    socket.on("error", reject);
    socket.on("data", (chunk) => {
      buffered += chunk.toString("latin1");
      if (!isWhole(buffered)) return;
      if (!buffered.startsWith("HTTP/1.1 200")) {
        reject(new Error(buffered.slice(0, 500)));
        socket.destroy();
        return;
      }
      times.push(performance.now() - sent);
      buffered = "";
      next();
    });
  });
}

function isWhole(response: string): boolean {
  const head = response.indexOf("\r\n\r\n");
  if (head < 0) return false;
  const length = /content-length: (\d+)/i.exec(response.slice(0, head))?.[1];
  if (length !== undefined) return response.length >= head + 4 + Number(length);
  return response.endsWith("0\r\n\r\n");
}

/** A 2026-07-28 `tasks/get` as an HTTP/1.1 request. */
export function pollRequest(port: number, taskId: string): string {
  const body = JSON.stringify({
    jsonrpc: "2.0",
    id: 1,
    method: "tasks/get",
    params: {
      taskId,
      _meta: {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { name: "bench", version: "0" },
        "io.modelcontextprotocol/clientCapabilities": { extensions: { "io.modelcontextprotocol/tasks": {} } },
      },
    },
  });
  return [
    "POST /mcp HTTP/1.1",
    `Host: 127.0.0.1:${port}`,
    "Content-Type: application/json",
    "Accept: application/json, text/event-stream",
    "MCP-Protocol-Version: 2026-07-28",
    "Mcp-Method: tasks/get",
    `Mcp-Name: ${taskId}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    "",
    body,
  ].join("\r\n");
}
