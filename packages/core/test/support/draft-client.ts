/** A client of the draft (SEP-1686), by hand over the official transports. Every message that it receives is checked. */
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { expect, onTestFinished } from "vitest";
import {
  DRAFT_REPLIES,
  DraftCreated,
  DraftRelatedMeta,
  DraftRelatedResult,
  DraftServerRequest,
} from "./draft-schemas.js";
import { type Json, RawClient, type RpcReply } from "./raw-client.js";
import { DRAFT_RELATED, DRAFT_TASK, FORMS } from "./sessions.js";

/** A request for a task that has been sent and may not be answered for a long time. */
export interface OpenCall {
  readonly id: Json;
  readonly taskId: string;
  readonly reply: Promise<RpcReply>;
  /** Whether an answer has come in. */
  answered(): boolean;
}

export const relatedTo = (taskId: string) => ({ [DRAFT_RELATED]: { taskId } });

export class DraftClient {
  private made = 0;

  private constructor(readonly raw: RawClient) {}

  /** Opens a session of its own. */
  static async connect(
    url: string,
    options: { capabilities?: Json; headers?: Record<string, string> } = {},
  ): Promise<DraftClient> {
    const transport = new StreamableHTTPClientTransport(new URL(url), {
      requestInit: { headers: options.headers ?? {} },
    });
    const client = new DraftClient(new RawClient(transport));
    onTestFinished(() => client.raw.close());
    await client.raw.initialize(options.capabilities ?? FORMS);
    return client;
  }

  /** Sends a request for a task (3.1). */
  start(method: string, params: Json, task: { taskId?: string; keepAlive?: Json } = {}): OpenCall {
    const taskId = task.taskId ?? `task-${++this.made}-${Math.random().toString(36).slice(2)}`;
    const meta = { ...params._meta, [DRAFT_TASK]: { ...task, taskId } };
    const { id, reply } = this.raw.send(method, { ...params, _meta: meta });
    const checked = reply.then((answer) => {
      if (answer.result !== undefined) DraftRelatedResult.parse(answer.result);
      return answer;
    });
    checked.catch(() => {});
    const answered = () =>
      this.raw.received.some((message) => message.method === undefined && message.id === id);
    return { id, taskId, reply: checked, answered };
  }

  tool(name: string, args: Json = {}, task: { taskId?: string; keepAlive?: Json } = {}): OpenCall {
    return this.start("tools/call", { name, arguments: args }, task);
  }

  /** Starts a tool as a task and resolves once the server has said that it is there. */
  async created(
    name: string,
    args: Json = {},
    task: { taskId?: string; keepAlive?: Json } = {},
  ): Promise<OpenCall> {
    const call = this.tool(name, args, task);
    await this.heardOf(call.taskId);
    return call;
  }

  /** Resolves with the creation notice of a task (3.4). */
  heardOf(taskId: string): Promise<Json> {
    return this.raw.until(() =>
      this.createdNotices().find(({ params }) => params._meta[DRAFT_RELATED].taskId === taskId),
    );
  }

  createdNotices(): { method: string; params: Json }[] {
    const notices = this.raw.notifications.filter(({ method }) => method === "notifications/tasks/created");
    for (const { params } of notices) DraftCreated.parse(params);
    return notices;
  }

  /** The server's first request about a task. */
  async asked(taskId: string): Promise<Json> {
    const request = await this.raw.until(() =>
      this.raw.requests.find(({ params }) => params?._meta?.[DRAFT_RELATED]?.taskId === taskId),
    );
    return DraftServerRequest.parse(request);
  }

  answer(request: Json, result: Json): Promise<void> {
    return this.raw.transport.send({ jsonrpc: "2.0", id: request.id, result });
  }

  /** Any request about a task, with the meta that the draft wants on it (4.7). */
  async about(method: string, taskId: string): Promise<RpcReply> {
    const reply = await this.raw.request(method, { taskId, _meta: relatedTo(taskId) });
    if (reply.result !== undefined) {
      DRAFT_REPLIES[method]!.parse(reply.result);
      expect(DraftRelatedMeta.parse(reply.result._meta)).toEqual(relatedTo(taskId));
    }
    return reply;
  }

  async get(taskId: string): Promise<Json> {
    const reply = await this.about("tasks/get", taskId);
    if (reply.error !== undefined) throw new Error(reply.error.message);
    return reply.result;
  }

  result(taskId: string): Promise<RpcReply> {
    return this.about("tasks/result", taskId);
  }

  delete(taskId: string): Promise<RpcReply> {
    return this.about("tasks/delete", taskId);
  }

  /** One page; a draft client shows what it is by nothing but what it has spoken before. */
  async list(cursor?: Json): Promise<RpcReply> {
    const reply = await this.raw.request("tasks/list", cursor === undefined ? {} : { cursor });
    if (reply.result !== undefined) DRAFT_REPLIES["tasks/list"]!.parse(reply.result);
    return reply;
  }

  /** All pages. */
  async listAll(): Promise<Json[]> {
    const tasks: Json[] = [];
    let cursor: string | undefined;
    do {
      const { result } = await this.list(cursor);
      tasks.push(...result.tasks);
      cursor = result.nextCursor;
    } while (cursor !== undefined);
    return tasks;
  }

  cancel(requestId: Json, meta?: Json): Promise<void> {
    return this.raw.notify("notifications/cancelled", { requestId, ...(meta && { _meta: meta }) });
  }

  /** Polls until the task has this status. */
  async reaches(taskId: string, status: string): Promise<Json> {
    let task: Json;
    const look = async () => {
      task = await this.get(taskId);
      return task.status;
    };
    await expect.poll(look, { interval: 10, timeout: 4_000 }).toBe(status);
    return task;
  }
}
