/** A load generator that costs little: fixed requests over keep-alive sockets, answers counted by their length. */
import { once } from "node:events";
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
  const clients: Client[] = [];
  // Each is served once before it counts, some at a time: a Node server that is busy hardly accepts new connections.
  while (clients.length < options.connections) {
    const more = Math.min(200, options.connections - clients.length);
    const opened = Array.from({ length: more }, (_, i) => Client.open(port, request(clients.length + i)));
    clients.push(...(await Promise.all(opened)));
  }
  const times: number[] = [];
  const started = performance.now();
  const drive = async (client: Client) => {
    for (let sent = started; sent < started + options.forMs; ) {
      await client.ask();
      const now = performance.now();
      times.push(now - sent);
      sent = now;
    }
    client.close();
  };
  await Promise.all(clients.map(drive));
  const sorted = times.sort((a, b) => a - b);
  const at = (share: number) => sorted[Math.floor(sorted.length * share)] ?? 0;
  return {
    perSecond: (times.length / (performance.now() - started)) * 1000,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
  };
}

/** A keep-alive connection that asks one thing. */
class Client {
  private buffered = "";
  private answered: () => void = () => {};
  private failed: (error: Error) => void = () => {};

  private constructor(
    private readonly socket: Socket,
    private readonly request: Buffer,
  ) {
    socket.on("error", (error) => this.failed(error));
    socket.on("end", () => this.failed(new Error("The server closed a connection that waits for an answer")));
    socket.on("data", (chunk) => this.receive(chunk));
  }

  static async open(port: number, request: string): Promise<Client> {
    const socket = connect({ port, host: "127.0.0.1", noDelay: true });
    await once(socket, "connect");
    const client = new Client(socket, Buffer.from(request, "latin1"));
    await client.ask();
    return client;
  }

  ask(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.answered = resolve;
      this.failed = reject;
      this.socket.write(this.request);
    });
  }

  close(): void {
    this.socket.destroy();
  }

  private receive(chunk: Buffer): void {
    this.buffered += chunk.toString("latin1");
    if (!isWhole(this.buffered)) return;
    const response = this.buffered;
    this.buffered = "";
    if (response.startsWith("HTTP/1.1 200")) this.answered();
    else this.failed(new Error(response.slice(0, 500)));
  }
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
