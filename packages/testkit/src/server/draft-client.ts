/** A client of the founding draft (SEP-1686), in JSON-RPC: the task id is its own, and the call stays open. */
import { randomUUID } from "node:crypto";
import { type JSONRPCMessage, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { isTerminal, type JsonObject, type TaskStatus } from "@taskferry/core";
import { type Asked, type Ending, type RemoteTask, type TaskClient, TOOL } from "./task-client.js";
import { until } from "./until.js";

const TASK = "modelcontextprotocol.io/task";
const RELATED_TASK = "modelcontextprotocol.io/related-task";

interface Message {
  readonly id?: number | string;
  readonly method?: string;
  readonly params?: JsonObject;
  readonly result?: JsonObject;
  readonly error?: { readonly message: string };
}

export class DraftClient implements TaskClient {
  #nextId = 1;
  readonly #pending = new Map<number | string, (reply: Message) => void>();
  readonly #created = new Map<string, () => void>();

  private constructor(
    private readonly transport: StreamableHTTPClientTransport,
    private readonly asked: Asked,
  ) {
    transport.onmessage = (message) => this.#receive(message as Message);
  }

  static async connect(url: string, asked: Asked): Promise<DraftClient> {
    const client = new DraftClient(new StreamableHTTPClientTransport(new URL(url)), asked);
    await client.transport.start();
    await client.#request("initialize", {
      protocolVersion: "2025-11-25",
      capabilities: { elicitation: { form: {}, url: {} }, sampling: {} },
      clientInfo: { name: "kit-draft-client", version: "0" },
    }).reply;
    client.transport.setProtocolVersion("2025-11-25");
    await client.#send({ method: "notifications/initialized" });
    return client;
  }

  async start(): Promise<RemoteTask> {
    const taskId = `kit-${randomUUID()}`;
    const created = new Promise<void>((resolve) => this.#created.set(taskId, resolve));
    const { id, reply } = this.#request("tools/call", {
      name: TOOL,
      arguments: {},
      _meta: { [TASK]: { taskId, keepAlive: 600_000 } },
    });
    // The call stays open until the work ends. It breaks off when the server is restarted.
    const refused = reply.then(() => undefined);
    refused.catch(() => undefined);
    await Promise.race([created, refused]);
    return this.#task(taskId, id);
  }

  async resume(handle: string): Promise<RemoteTask> {
    return this.#task(handle);
  }

  close(): Promise<void> {
    return this.transport.close();
  }

  #task(taskId: string, requestId?: number): RemoteTask {
    const _meta = { [RELATED_TASK]: { taskId } };
    const get = () => this.#request("tasks/get", { taskId, _meta }).reply;
    const status = async () => String((await get())["status"]);
    return {
      handle: taskId,
      status,
      end: async (): Promise<Ending> => {
        const task = await until("the end of the draft task", get, (got) =>
          isTerminal(got["status"] as TaskStatus),
        );
        const ended = {
          status: String(task["status"]),
          ...(task["error"] && { error: String(task["error"]) }),
        };
        if (ended.status !== "completed") return ended;
        return { ...ended, result: await this.#request("tasks/result", { taskId, _meta }).reply };
      },
      cancel: () => {
        if (requestId === undefined) throw new Error("A draft task is cancelled by the session that made it");
        return this.#send({ method: "notifications/cancelled", params: { requestId, _meta } });
      },
    };
  }

  #request(method: string, params: JsonObject): { id: number; reply: Promise<JsonObject> } {
    const id = this.#nextId++;
    const replied = new Promise<Message>((resolve) => this.#pending.set(id, resolve));
    const sent = this.#send({ id, method, params });
    const reply = Promise.all([replied, sent]).then(([{ result, error }]) => {
      if (error !== undefined) throw new Error(`${method}: ${error.message}`);
      return result ?? {};
    });
    return { id, reply };
  }

  #send(message: JsonObject): Promise<void> {
    return this.transport.send({ jsonrpc: "2.0", ...message } as JSONRPCMessage);
  }

  #receive({ id, method, params, ...reply }: Message): void {
    if (method === "notifications/tasks/created") {
      const meta = (params?.["_meta"] ?? {}) as JsonObject;
      const related = (meta[RELATED_TASK] ?? {}) as JsonObject;
      this.#created.get(String(related["taskId"]))?.();
    } else if (method === "elicitation/create" && id !== undefined) {
      void this.#send({ id, result: this.asked.elicit(params) });
    } else if (method === "sampling/createMessage" && id !== undefined) {
      void this.#send({ id, result: this.asked.sample(params) });
    } else if (method === undefined && id !== undefined) {
      this.#pending.get(id)?.(reply);
    }
  }
}
