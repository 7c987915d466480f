/** The founding draft (SEP-1686): the client makes the task's id. No SDK speaks it, so this is JSON-RPC by hand. */
import { randomUUID } from "node:crypto";
import { type JSONRPCMessage, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import {
  type Answerer,
  elicited,
  IDEMPOTENCY_KEY,
  type RemoteTask,
  type TaskClient,
  type ToolResult,
} from "./task-client.js";
import { until } from "./timeline.js";

const TASK = "modelcontextprotocol.io/task";
const RELATED_TASK = "modelcontextprotocol.io/related-task";
const ENDED = new Set(["completed", "failed", "cancelled", "unknown"]);

// biome-ignore lint/suspicious/noExplicitAny: JSON-RPC by hand
type Json = any;

export class DraftClient implements TaskClient {
  readonly generation = "draft";
  #nextId = 1;
  readonly #pending = new Map<number, (message: Json) => void>();
  readonly #created = new Map<string, () => void>();
  /** The request that made a task: a cancellation has to name it. */
  readonly #requests = new Map<string, number>();

  private constructor(
    private readonly transport: StreamableHTTPClientTransport,
    private readonly answerer: Answerer,
  ) {
    transport.onmessage = (message) => this.#receive(message);
  }

  static async connect(url: string, answerer: Answerer): Promise<DraftClient> {
    const client = new DraftClient(new StreamableHTTPClientTransport(new URL(url)), answerer);
    await client.transport.start();
    await client.#request("initialize", {
      protocolVersion: "2025-11-25",
      capabilities: { elicitation: {} },
      clientInfo: { name: "draft-client", version: "0" },
    });
    client.transport.setProtocolVersion("2025-11-25");
    await client.#send({ method: "notifications/initialized" });
    return client;
  }

  /** Resolves once the server says that the task is there to be polled; the call itself stays open until it ends. */
  async start(name: string, args: object, idempotencyKey?: string): Promise<RemoteTask> {
    // Whoever makes the ids repeats a call under the same one.
    const taskId = `draft-${idempotencyKey ?? randomUUID()}`;
    const created = new Promise<void>((resolve) => this.#created.set(taskId, resolve));
    this.#requests.set(taskId, this.#nextId);
    const call = this.#request("tools/call", {
      name,
      arguments: args,
      _meta: {
        [TASK]: { taskId, keepAlive: 600_000 },
        ...(idempotencyKey !== undefined && { [IDEMPOTENCY_KEY]: idempotencyKey }),
      },
    });
    // When it breaks later on, the task is polled all the same.
    await Promise.race([created, call.then(() => created)]);
    call.catch(() => {});
    return this.resume(taskId);
  }

  async resume(taskId: string): Promise<RemoteTask> {
    const _meta = { [RELATED_TASK]: { taskId } };
    const look = () => this.#request("tasks/get", { taskId, _meta });
    return {
      handle: taskId,
      look,
      end: async () => {
        const { status } = await until(`the end of ${taskId}`, look, (task) => ENDED.has(task.status));
        if (status !== "completed") return { status };
        return { status, result: (await this.#request("tasks/result", { taskId, _meta })) as ToolResult };
      },
      cancel: () =>
        this.#send({
          method: "notifications/cancelled",
          params: { requestId: this.#requests.get(taskId), _meta },
        }),
    };
  }

  close(): Promise<void> {
    return this.transport.close();
  }

  async #request(method: string, params: Json): Promise<Json> {
    const id = this.#nextId++;
    const reply = new Promise<Json>((resolve) => this.#pending.set(id, resolve));
    await this.#send({ id, method, params });
    const { result, error } = await reply;
    if (error !== undefined) throw new Error(`${method}: ${error.message}`);
    return result;
  }

  #send(message: Json): Promise<void> {
    return this.transport.send({ jsonrpc: "2.0", ...message } as JSONRPCMessage);
  }

  #receive({ id, method, params, ...reply }: Json): void {
    if (method === "notifications/tasks/created") this.#created.get(params._meta[RELATED_TASK].taskId)?.();
    else if (method === "elicitation/create") {
      void this.#send({
        id,
        result: {
          ...elicited(this.answerer(params.message)),
          _meta: { [RELATED_TASK]: params._meta[RELATED_TASK] },
        },
      });
    } else if (method === undefined) this.#pending.get(id)?.(reply);
  }
}
