/** A client that speaks JSON-RPC by hand over any SDK transport: what the draft's clients are, and what tests of shapes need. */
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client";

// biome-ignore lint/suspicious/noExplicitAny: JSON-RPC by hand, and wrong on purpose
export type Json = any;

export interface RpcReply {
  readonly result?: Json;
  readonly error?: { code: number; message: string; data?: Json };
}

type Answerer = (request: { method: string; params: Json }) => Json | Promise<Json>;

export class RawClient {
  readonly notifications: { method: string; params: Json }[] = [];
  /** Requests that the server has sent, in order. */
  readonly requests: { id: Json; method: string; params: Json }[] = [];
  /** Everything that came in, in order. */
  readonly received: Json[] = [];
  answerer: Answerer | undefined;
  private nextId = 1;
  private readonly waiting = new Map<Json, (reply: RpcReply) => void>();
  private readonly watchers = new Set<() => void>();

  constructor(readonly transport: Transport) {
    transport.onmessage = (message) => void this.receive(message as Json);
  }

  /** Opens the connection with the 2025 handshake. */
  async initialize(capabilities: Json = {}): Promise<RpcReply> {
    await this.transport.start();
    const reply = await this.request("initialize", {
      protocolVersion: "2025-11-25",
      capabilities,
      clientInfo: { name: "raw", version: "0" },
    });
    this.transport.setProtocolVersion?.("2025-11-25");
    await this.notify("notifications/initialized");
    return reply;
  }

  /** Sends a request and gives its id at once. */
  send(method: string, params?: Json, id: Json = this.nextId++): { id: Json; reply: Promise<RpcReply> } {
    const reply = new Promise<RpcReply>((resolve, reject) => {
      this.waiting.set(id, resolve);
      const message = { jsonrpc: "2.0", id, method, ...(params !== undefined && { params }) };
      this.transport.send(message as JSONRPCMessage).catch(reject);
    });
    return { id, reply };
  }

  request(method: string, params?: Json): Promise<RpcReply> {
    return this.send(method, params).reply;
  }

  async notify(method: string, params?: Json): Promise<void> {
    await this.transport.send({
      jsonrpc: "2.0",
      method,
      ...(params !== undefined && { params }),
    } as JSONRPCMessage);
  }

  /** Resolves once `find` gives something, looking again whenever a message comes in. */
  async until<T>(find: () => T | undefined | false): Promise<T> {
    for (;;) {
      const found = find();
      if (found !== undefined && found !== false) return found;
      await new Promise<void>((resolve) => this.watchers.add(resolve));
    }
  }

  close(): Promise<void> {
    return this.transport.close();
  }

  private async receive(message: Json): Promise<void> {
    this.received.push(message);
    if (message.method !== undefined && message.id !== undefined) {
      this.requests.push(message);
      if (this.answerer !== undefined) {
        const result = await this.answerer(message);
        if (result !== undefined) {
          await this.transport
            .send({ jsonrpc: "2.0", id: message.id, result } as JSONRPCMessage)
            .catch(() => {});
        }
      }
    } else if (message.method !== undefined) {
      this.notifications.push(message);
    } else {
      this.waiting.get(message.id)?.(message);
      this.waiting.delete(message.id);
    }
    for (const wake of this.watchers) wake();
    this.watchers.clear();
  }
}

/** One 2026-07-28 request over HTTP, headers and envelope as the revision wants them. */
export async function modernRequest(
  url: string,
  method: string,
  params: Json = {},
  options: { capabilities?: Json; headers?: Record<string, string>; id?: Json } = {},
): Promise<RpcReply & { status: number }> {
  const body = {
    jsonrpc: "2.0",
    id: options.id ?? 1,
    method,
    params: {
      ...params,
      _meta: {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { name: "raw", version: "0" },
        "io.modelcontextprotocol/clientCapabilities": options.capabilities ?? TASKS,
        ...params._meta,
      },
    },
  };
  const name = params.name ?? params.uri ?? params.taskId;
  const response = await fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": method,
      ...(name !== undefined && { "mcp-name": String(name) }),
      ...options.headers,
    },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  const messages = text.startsWith("{")
    ? [JSON.parse(text)]
    : text
        .split("\n")
        .filter((line) => line.startsWith("data:"))
        .map((line) => JSON.parse(line.slice(5)));
  const reply = messages.find((message) => message.id === body.id || "error" in message);
  return { ...reply, status: response.status };
}

/** Declares the extension, and nothing else. */
export const TASKS = { extensions: { "io.modelcontextprotocol/tasks": {} } };
