/** A client of the founding draft (SEP-1686): the task id is its own, and the result may be fetched from any session. */
import { type JSONRPCMessage, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const TASK = "modelcontextprotocol.io/task";
const RELATED_TASK = "modelcontextprotocol.io/related-task";

// biome-ignore lint/suspicious/noExplicitAny: JSON-RPC by hand
type Json = any;

/** One session. */
export class DraftClient {
  private nextId = 1;
  private readonly pending = new Map<number, (message: Json) => void>();
  private readonly created = new Map<string, () => void>();

  private constructor(private readonly transport: StreamableHTTPClientTransport) {
    transport.onmessage = (message) => this.receive(message);
  }

  static async connect(url: string): Promise<DraftClient> {
    const client = new DraftClient(new StreamableHTTPClientTransport(new URL(url)));
    await client.transport.start();
    const clientInfo = { name: "draft-client", version: "0" };
    await client.request("initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo });
    client.transport.setProtocolVersion("2025-11-25");
    await client.send({ method: "notifications/initialized" });
    return client;
  }

  /** Calls a tool as a task, and resolves once the server says that the task is there to be polled. */
  async startTask(name: string, args: Json, taskId: string): Promise<void> {
    const created = new Promise<void>((resolve) => this.created.set(taskId, resolve));
    // The call itself stays open until the work ends; this client does not wait for it.
    this.request("tools/call", {
      name,
      arguments: args,
      _meta: { [TASK]: { taskId, keepAlive: 600_000 } },
    }).catch(() => {});
    await created;
  }

  getTask(taskId: string): Promise<Json> {
    return this.request("tasks/get", { taskId, _meta: { [RELATED_TASK]: { taskId } } });
  }

  getResult(taskId: string): Promise<Json> {
    return this.request("tasks/result", { taskId, _meta: { [RELATED_TASK]: { taskId } } });
  }

  close(): Promise<void> {
    return this.transport.close();
  }

  private async request(method: string, params: Json): Promise<Json> {
    const id = this.nextId++;
    const reply = new Promise<Json>((resolve) => this.pending.set(id, resolve));
    await this.send({ id, method, params });
    const { result, error } = await reply;
    if (error !== undefined) throw new Error(`${method}: ${error.message}`);
    return result;
  }

  private send(message: Json): Promise<void> {
    return this.transport.send({ jsonrpc: "2.0", ...message } as JSONRPCMessage);
  }

  private receive(message: Json): void {
    if (message.method === "notifications/tasks/created") {
      this.created.get(message.params._meta[RELATED_TASK].taskId)?.();
    } else if (message.method === undefined) {
      this.pending.get(message.id)?.(message);
    }
  }
}
