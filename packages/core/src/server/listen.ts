/**
 * `subscriptions/listen` with `taskIds` (2026-07-28). The SDK's entries answer a listen themselves and know no task ids,
 * so a listen goes to them without the ids, and this relay adds what they leave out to the stream that comes back: the
 * ids to the acknowledgement, and `notifications/tasks`. All of the entry's own checks, filters, capacity and closing
 * thus stay the SDK's.
 */

import { isJsonObject, type Json, type JsonObject } from "../contract/json.js";
import type { Owner } from "../contract/owner.js";
import type { TaskEngine } from "../engine/engine.js";
import { CLIENT_CAPABILITIES, INVALID_PARAMS, JsonRpcError, SUBSCRIPTION_ID } from "../wire/codec.js";
import { declaresTasks, missingTasks, taskNotification } from "../wire/v2026-07-28.js";

/** A change that every server may be asked for: keeps the SDK's stream open when only tasks are listened to. */
const KEEP_OPEN = "toolsListChanged";
const KEEP_OPEN_NOTE = "notifications/tools/list_changed";

/** Each id costs a look-up and a watch for as long as the stream is open. */
const MOST_TASK_IDS = 1_000;
const NO_TASK_IDS = `Invalid params: notifications.taskIds must be a list of at most ${MOST_TASK_IDS} strings`;

/** A JSON-RPC message, as JSON. */
export type Message = JsonObject;

/** The listen's task ids; `undefined` if the message is no listen for tasks. */
export function listenedTaskIds(message: unknown): readonly Json[] | undefined {
  if (!isJsonObject(message) || message.method !== "subscriptions/listen" || !isJsonObject(message.params))
    return undefined;
  const { notifications } = message.params;
  if (!isJsonObject(notifications) || !("taskIds" in notifications)) return undefined;
  return Array.isArray(notifications.taskIds) ? notifications.taskIds : [];
}

/** One listen, between the client and the SDK's entry. */
export class ListenRelay {
  /** Why the listen is refused, once the entry has found nothing against it. */
  readonly refusal: Message | undefined;
  private readonly subscriptionId: Json;
  private readonly keepOpenWanted: boolean;
  private readonly capabilities: JsonObject | undefined;
  private readonly unsubscribe: (() => void)[] = [];
  private ended = false;

  constructor(
    private readonly message: Message,
    private readonly engine: TaskEngine,
    private readonly owner: Owner,
    private readonly send: (message: Message) => void,
  ) {
    const params = message.params as JsonObject;
    const meta = isJsonObject(params._meta) ? params._meta : {};
    const declared = meta[CLIENT_CAPABILITIES];
    this.subscriptionId = message.id ?? null;
    this.capabilities = isJsonObject(declared) ? declared : undefined;
    const notifications = params.notifications as JsonObject;
    this.keepOpenWanted = notifications[KEEP_OPEN] === true;
    if (!declaresTasks(this.capabilities)) this.refusal = errorReply(this.subscriptionId, missingTasks());
    else if (!isTaskIds(notifications.taskIds))
      this.refusal = errorReply(this.subscriptionId, new JsonRpcError(INVALID_PARAMS, NO_TASK_IDS));
  }

  /** The listen as the SDK's entry may see it. */
  forEntry(): Message {
    const params = this.message.params as JsonObject;
    const { taskIds: _taskIds, ...rest } = params.notifications as JsonObject;
    // What is no boolean stays as it is, for the entry to refuse.
    const keepOpen = typeof rest[KEEP_OPEN] === "boolean" ? true : (rest[KEEP_OPEN] ?? true);
    return { ...this.message, params: { ...params, notifications: { ...rest, [KEEP_OPEN]: keepOpen } } };
  }

  /** What the client hears of a message that the entry sent on this stream; `undefined`: nothing. */
  async relay(message: Message): Promise<Message | undefined> {
    if (message.method === KEEP_OPEN_NOTE && !this.keepOpenWanted) return undefined;
    if (message.method === "notifications/subscriptions/acknowledged") return this.acknowledged(message);
    if ("result" in message || "error" in message) this.end();
    return message;
  }

  /** Begins the notes. Called once the acknowledgement is on its way: it is the first message of a stream. */
  begin(): void {
    for (const taskId of this.accepted) this.follow(taskId);
  }

  end(): void {
    this.ended = true;
    for (const stop of this.unsubscribe.splice(0)) stop();
  }

  private accepted: readonly string[] = [];

  private async acknowledged(message: Message): Promise<Message> {
    const params = message.params as JsonObject;
    const { [KEEP_OPEN]: keptOpen, ...honoured } = params.notifications as JsonObject;
    const wanted = new Set((listenedTaskIds(this.message) ?? []) as readonly string[]);
    const known: string[] = [];
    // Foreign and unknown ids are left out alike: the subset tells nothing about another's tasks.
    for (const taskId of wanted) {
      const view = await this.engine.peek(this.owner, taskId).catch(() => undefined);
      if (view !== undefined) known.push(taskId);
    }
    this.accepted = known;
    const notifications = {
      ...honoured,
      ...(this.keepOpenWanted && keptOpen !== undefined && { [KEEP_OPEN]: keptOpen }),
      taskIds: known,
    };
    return { ...message, params: { ...params, notifications } };
  }

  /** Sends the task as it is, and again whenever what `tasks/get` would answer has changed. */
  private follow(taskId: string): void {
    let told = "";
    let telling = Promise.resolve();
    const tell = async () => {
      if (this.ended) return;
      const view = await this.engine.peek(this.owner, taskId);
      const { method, params } = taskNotification(view, this.capabilities);
      const { lastUpdatedAt: _when, ...shown } = params;
      const now = JSON.stringify(shown);
      if (now === told || this.ended) return;
      told = now;
      this.send({
        jsonrpc: "2.0",
        method,
        params: { ...params, _meta: { [SUBSCRIPTION_ID]: this.subscriptionId } },
      });
    };
    // One after the other: a note must not overtake the one before it.
    const queue = () => {
      telling = telling.then(tell).catch(() => {});
    };
    this.unsubscribe.push(this.engine.subscribe(this.owner, taskId, queue));
    queue();
  }
}

function isTaskIds(value: Json | undefined): boolean {
  return Array.isArray(value) && value.length <= MOST_TASK_IDS && value.every((id) => typeof id === "string");
}

function errorReply(id: Json, { code, message, data }: JsonRpcError): Message {
  return { jsonrpc: "2.0", id, error: { code, message, ...(data !== undefined && { data }) } };
}
