/** A client of each generation, by hand, over stateless HTTP: it survives every server, and asks again. */

export type Generation = "draft" | "2025-11-25" | "2026-07-28";

// biome-ignore lint/suspicious/noExplicitAny: JSON-RPC by hand
type Json = any;

const TASKS = { extensions: { "io.modelcontextprotocol/tasks": {} } };

/** The server did not answer: it has died, or is not there yet. */
export class Unreachable extends Error {}

export class ChaosClient {
  taskId: string | undefined;

  constructor(
    readonly generation: Generation,
    private readonly key: string,
  ) {}

  /** Makes the task, or finds the one that an earlier call has made. */
  async create(url: string): Promise<void> {
    const _meta: Json = { "taskferry.dev/idempotency-key": this.key };
    const params: Json = { name: "flow", arguments: {}, _meta };
    if (this.generation === "draft") {
      // The client's own id is what makes a retry safe; the call stays open, so it is not waited for.
      this.taskId = this.key;
      _meta["modelcontextprotocol.io/task"] = { taskId: this.key };
      await this.openCall(url, params);
      return;
    }
    if (this.generation === "2025-11-25") params.task = {};
    const { result, error } = await this.request(url, "tools/call", params);
    if (error !== undefined) throw new Error(error.message);
    this.taskId = result.task?.taskId ?? result.taskId;
  }

  async get(url: string): Promise<Json> {
    const { result, error } = await this.request(url, "tasks/get", {
      taskId: this.taskId,
      ...this.related(),
    });
    if (error !== undefined) throw new Error(error.message);
    return result;
  }

  async answer(url: string, task: Json): Promise<void> {
    const accepted = { action: "accept", content: {} };
    if (this.generation === "2026-07-28") {
      const keys = Object.keys(task.inputRequests ?? {});
      const inputResponses = Object.fromEntries(keys.map((key) => [key, accepted]));
      await this.request(url, "tasks/update", { taskId: this.taskId, inputResponses });
    } else {
      // The question goes to a companion tool: a stateless client cannot be asked live.
      await this.request(url, "tools/call", { name: "task_answer", arguments: { taskId: this.taskId } });
    }
  }

  async cancel(url: string): Promise<void> {
    if (this.generation !== "draft") {
      await this.request(url, "tasks/cancel", { taskId: this.taskId });
      return;
    }
    await this.post(url, { method: "notifications/cancelled", params: { requestId: 1, ...this.related() } });
  }

  private related(): Json {
    return this.generation === "draft"
      ? { _meta: { "modelcontextprotocol.io/related-task": { taskId: this.taskId } } }
      : {};
  }

  private async openCall(url: string, params: Json): Promise<void> {
    const stop = new AbortController();
    try {
      const response = await this.post(url, { id: 1, method: "tools/call", params }, stop.signal);
      const reader = response.body?.getReader();
      const { value } = (await reader?.read()) ?? {};
      const first = new TextDecoder().decode(value);
      // The created notification, or an error: "Task ID already exists" is a retry that has found its task.
      if (first.includes("error") && !first.includes("already exists") && !first.includes("tasks/created"))
        throw new Error(first);
    } finally {
      stop.abort();
    }
  }

  private async request(url: string, method: string, params: Json): Promise<Json> {
    const response = await this.post(url, { id: 1, method, params });
    const text = await response.text().catch((cause) => {
      throw new Unreachable(method, { cause });
    });
    if (text.startsWith("{")) return JSON.parse(text);
    const last = text
      .split("\n")
      .filter((line) => line.startsWith("data:"))
      .at(-1);
    if (last === undefined) throw new Unreachable(`${method}: the stream broke`);
    return JSON.parse(last.slice(5));
  }

  private async post(url: string, message: Json, signal?: AbortSignal): Promise<Response> {
    const modern = this.generation === "2026-07-28";
    const { params } = message;
    const name = params.name ?? params.taskId;
    const envelope = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": { name: "chaos", version: "0" },
      "io.modelcontextprotocol/clientCapabilities": { elicitation: { form: {} }, ...TASKS },
    };
    const body = {
      jsonrpc: "2.0",
      ...message,
      ...(modern && { params: { ...params, _meta: { ...params._meta, ...envelope } } }),
    };
    try {
      return await fetch(url, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
          "mcp-protocol-version": modern ? "2026-07-28" : "2025-11-25",
          ...(modern && {
            "mcp-method": message.method,
            ...(name !== undefined && { "mcp-name": String(name) }),
          }),
        },
        body: JSON.stringify(body),
        signal:
          signal === undefined
            ? AbortSignal.timeout(10_000)
            : AbortSignal.any([signal, AbortSignal.timeout(10_000)]),
      });
    } catch (cause) {
      throw new Unreachable(message.method, { cause });
    }
  }
}
