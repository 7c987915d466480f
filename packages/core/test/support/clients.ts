/** The official clients, on any transport, every message they receive checked against the published schemas. */
import { type JSONRPCMessage, Client as ModernClient, type Transport } from "@modelcontextprotocol/client";
import {
  createApplicationInputHandler,
  createTaskSessionFromClient,
  type TaskEnabledSession,
} from "@modelcontextprotocol/ext-tasks/client";
import { Client as V1Client } from "@modelcontextprotocol/sdk/client/index.js";
import { onTestFinished } from "vitest";
import { type Json, RawClient } from "./raw-client.js";
import { ShapeCheck } from "./shapes.js";

/** The SDK that most hosts are built on, with its experimental tasks. */
export async function v1Client(
  transport: Json,
  capabilities: Json = { elicitation: { form: {} } },
): Promise<{ client: V1Client; shapes: ShapeCheck }> {
  const shapes = new ShapeCheck("2025-11-25");
  const client = new V1Client({ name: "v1", version: "0" }, { capabilities });
  onTestFinished(() => client.close());
  await client.connect(shapes.watch(transport));
  return { client, shapes };
}

/** A client by hand that has shaken hands as one of 2025-11-25; the draft's clients are such. */
export async function rawClient(
  transport: Transport,
  generation: "draft" | "2025-11-25" = "draft",
  capabilities: Json = {},
): Promise<{ client: RawClient; shapes: ShapeCheck }> {
  const shapes = new ShapeCheck(generation);
  const client = new RawClient(shapes.watch(transport as Json));
  // RawClient listens from its construction on, the watch from the start on.
  onTestFinished(() => client.close());
  await client.initialize(capabilities);
  return { client, shapes };
}

export const MODERN_CAPABILITIES = {
  elicitation: { form: {} },
  extensions: { "io.modelcontextprotocol/tasks": {} },
};

/** `@modelcontextprotocol/client` with `ext-tasks` on top, in either era. Answers every question with `content`. */
export async function extTasksSession(
  transport: Transport,
  era: "legacy" | "modern",
  content: Record<string, string> = {},
): Promise<{ session: TaskEnabledSession; client: ModernClient; shapes: ShapeCheck }> {
  const shapes = new ShapeCheck(era === "modern" ? "2026-07-28" : "2025-11-25");
  const shared = new SharedTransport(shapes.watch(transport as Json));
  const capabilities = era === "modern" ? MODERN_CAPABILITIES : { elicitation: { form: {} } };
  const clientInfo = { name: "ext-tasks", version: "0" };
  const client = new ModernClient(clientInfo, {
    capabilities,
    versionNegotiation: { mode: era === "modern" ? "auto" : "legacy" },
  });
  onTestFinished(() => client.close());
  await client.connect(shared);
  const refuse = () => {
    throw new Error("never asked for");
  };
  const base = {
    endpointId: "test",
    onInputRequest: createApplicationInputHandler({
      elicitation: () => ({ action: "accept", content }),
      sampling: refuse,
      roots: refuse,
    }),
  };
  const session =
    era === "legacy"
      ? createTaskSessionFromClient(client, base)
      : createTaskSessionFromClient(client, {
          ...base,
          // The client's own codec knows no task results: these requests go beside it.
          rawDispatch: (request: Json) => shared.request(request),
          v2RequestFraming: {
            protocolVersion: "2026-07-28",
            clientInfo,
            clientCapabilities: MODERN_CAPABILITIES,
          },
        });
  return { session, client, shapes };
}

/** One transport for two: an SDK client, and requests that it cannot send. */
class SharedTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: Transport["onmessage"];
  private nextId = 1;
  private readonly waiting = new Map<Json, (message: Json) => void>();

  constructor(private readonly wire: Transport) {}

  get sessionId(): string | undefined {
    return this.wire.sessionId;
  }

  setProtocolVersion(version: string): void {
    this.wire.setProtocolVersion?.(version);
  }

  async start(): Promise<void> {
    this.wire.onclose = () => this.onclose?.();
    this.wire.onerror = (error) => this.onerror?.(error);
    this.wire.onmessage = ((message: Json, extra: Json) => {
      const answer = this.waiting.get(message.id);
      if (message.method !== undefined || answer === undefined) return this.onmessage?.(message, extra);
      this.waiting.delete(message.id);
      answer(message);
    }) as Transport["onmessage"];
    await this.wire.start();
  }

  send(message: JSONRPCMessage, options?: Json): Promise<void> {
    return this.wire.send(message, options);
  }

  close(): Promise<void> {
    return this.wire.close();
  }

  async request(request: Json): Promise<Json> {
    const id = `beside-${this.nextId++}`;
    const reply = new Promise<Json>((resolve) => this.waiting.set(id, resolve));
    const { method, params } = request;
    const name = params.name ?? params.taskId;
    const headers = { "mcp-method": method, ...(name !== undefined && { "mcp-name": name }) };
    await this.wire.send({ jsonrpc: "2.0", id, ...request } as JSONRPCMessage, { headers } as Json);
    const message = await reply;
    return "error" in message
      ? { kind: "error", error: message.error }
      : { kind: "result", result: message.result };
  }
}
