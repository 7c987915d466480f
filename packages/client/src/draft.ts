/** The founding draft (SEP-1686). No SDK speaks it, so this is JSON-RPC over the SDK's transport. */
import { type JSONRPCMessage, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { readHandle, writeHandle } from "./handle.js";
import { CLIENT_INFO, IDEMPOTENCY_KEY, meta } from "./meta.js";
import type {
  AskedQuestion,
  ConnectOptions,
  Ending,
  JsonObject,
  RemoteTask,
  StartOptions,
  TaskClient,
  ToolResult,
} from "./task-client.js";
import { waitForEnd } from "./wait.js";

const TASK = "modelcontextprotocol.io/task";
const RELATED_TASK = "modelcontextprotocol.io/related-task";
const ENDED: ReadonlySet<string> = new Set(["completed", "failed", "cancelled", "unknown"]);

interface Message {
  readonly id?: number | string;
  readonly method?: string;
  readonly params?: JsonObject;
  readonly result?: JsonObject;
  readonly error?: { readonly code: number; readonly message: string };
}

export class DraftTaskClient implements TaskClient {
  readonly generation = "draft";
  private nextId = 1;
  private readonly pending = new Map<number | string, (reply: Message) => void>();
  private readonly created = new Map<string, () => void>();

  private constructor(
    private readonly transport: StreamableHTTPClientTransport,
    private readonly options: ConnectOptions,
  ) {
    // A reply that the connection cannot take any more: the server asks the next session again.
    transport.onmessage = (message) => void this.receive(message as Message).catch(() => {});
    // Whoever waits for an answer would wait for ever.
    transport.onclose = () => {
      for (const settle of this.pending.values())
        settle({ error: { code: 0, message: "The connection is closed" } });
      this.pending.clear();
    };
  }

  static async open(url: URL, options: ConnectOptions): Promise<DraftTaskClient> {
    const requestInit = { headers: { ...options.headers } };
    const client = new DraftTaskClient(new StreamableHTTPClientTransport(url, { requestInit }), options);
    await client.transport.start();
    await client.request("initialize", {
      protocolVersion: "2025-11-25",
      capabilities: options.answer === undefined ? {} : { elicitation: { form: {}, url: {} } },
      clientInfo: { ...(options.clientInfo ?? CLIENT_INFO) },
    }).reply;
    client.transport.setProtocolVersion("2025-11-25");
    await client.send({ method: "notifications/initialized" });
    return client;
  }

  /** Resolves when the server says that the task is there; the call itself stays open until the work ends (3.4). */
  async start(tool: string, args: JsonObject = {}, options: StartOptions = {}): Promise<RemoteTask> {
    const { keepMs, idempotencyKey, taskId = crypto.randomUUID() } = options;
    const created = new Promise<"created">((resolve) => this.created.set(taskId, () => resolve("created")));
    const task: JsonObject = { taskId, ...(keepMs !== undefined && { keepAlive: keepMs }) };
    const _meta = {
      [TASK]: task,
      ...(idempotencyKey !== undefined && { [IDEMPOTENCY_KEY]: idempotencyKey }),
    };
    const { id, reply } = this.request("tools/call", { name: tool, arguments: args, _meta });
    // A server that knows no tasks sends no notification: its answer comes first.
    reply.catch(() => {});
    const first = await Promise.race([created, reply]).finally(() => this.created.delete(taskId));
    if (first !== "created" && !(RELATED_TASK in meta(first))) {
      throw new Error(
        `The tool "${tool}" was answered without a task: the server does not speak the draft, or not for it`,
      );
    }
    return this.task(taskId, id);
  }

  async resume(handle: string): Promise<RemoteTask> {
    return this.task(readHandle(handle, "draft"));
  }

  close(): Promise<void> {
    return this.transport.close();
  }

  private task(taskId: string, requestId?: number): RemoteTask {
    const _meta = { [RELATED_TASK]: { taskId } };
    const get = () => this.request("tasks/get", { taskId, _meta }).reply;
    const statusOf = (task: JsonObject) => ({
      status: String(task.status),
      ...(typeof task.error === "string" && { message: task.error }),
    });
    return {
      taskId,
      handle: writeHandle("draft", taskId),
      status: async () => statusOf(await get()),
      end: async (options): Promise<Ending> => {
        const task = await waitForEnd(get, statusOf, ENDED, "pollFrequency", options);
        const status = String(task.status) as Ending["status"];
        if (status !== "completed")
          return { status, ...(typeof task.error === "string" && { error: task.error }) };
        const result = await this.request("tasks/result", { taskId, _meta }).reply;
        return { status, result: result as ToolResult };
      },
      cancel: () =>
        this.send({
          method: "notifications/cancelled",
          params: { ...(requestId !== undefined && { requestId }), _meta },
        }),
    };
  }

  private request(
    method: string,
    params: JsonObject,
  ): { readonly id: number; readonly reply: Promise<JsonObject> } {
    const id = this.nextId++;
    const replied = new Promise<Message>((resolve) => this.pending.set(id, resolve));
    const reply = this.send({ id, method, params })
      .then(() => replied)
      .then(({ result, error }) => {
        if (error !== undefined) throw new Error(`${method}: ${error.message}`);
        return result ?? {};
      })
      .finally(() => this.pending.delete(id));
    return { id, reply };
  }

  private send(message: JsonObject): Promise<void> {
    return this.transport.send({ jsonrpc: "2.0", ...message } as JSONRPCMessage);
  }

  /** What a question is answered with. */
  private async answered(params: JsonObject): Promise<JsonObject> {
    const { answer = () => ({ action: "cancel" }) } = this.options;
    try {
      return { result: { ...(await answer(params as unknown as AskedQuestion)) } as JsonObject };
    } catch (error) {
      return { error: { code: -32603, message: error instanceof Error ? error.message : String(error) } };
    }
  }

  private async receive({ id, method, params = {}, ...reply }: Message): Promise<void> {
    if (method === "notifications/tasks/created") {
      const { taskId } = (meta(params)[RELATED_TASK] ?? {}) as JsonObject;
      this.created.get(String(taskId))?.();
    } else if (method === "elicitation/create" && id !== undefined) {
      await this.send({ id, ...(await this.answered(params)) });
    } else if (method !== undefined && id !== undefined) {
      await this.send({ id, error: { code: -32601, message: "Method not found" } });
    } else if (id !== undefined) {
      this.pending.get(id)?.(reply);
    }
  }
}
