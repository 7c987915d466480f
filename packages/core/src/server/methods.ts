/** `tasks/*`, in the asker's generation. */
import type { ServerContext } from "@modelcontextprotocol/server";
import { WorkflowError } from "../contract/errors.js";
import { isJsonObject, type JsonObject } from "../contract/json.js";
import type { Owner } from "../contract/owner.js";
import { type Generation, isTerminal } from "../contract/task.js";
import type { TaskEngine, TaskView } from "../engine/engine.js";
import { RELATED_TASK, type TaskMethodName } from "../wire/codec.js";
import * as draft from "../wire/draft.js";
import * as v2025 from "../wire/v2025-11-25.js";
import * as v2026 from "../wire/v2026-07-28.js";
import { askOnOpenCall } from "./ask.js";
import type { Connection, Speaker } from "./connection.js";
import type { RawRequest } from "./sdk-internals.js";

type MethodHandler = (
  connection: Connection,
  params: JsonObject,
  ctx: ServerContext,
  engine: TaskEngine,
) => Promise<JsonObject>;

/** The methods of the 2025 era: the draft's and 2025-11-25's, which share a connection and three names. */
export const LEGACY_METHODS: Readonly<Partial<Record<TaskMethodName, MethodHandler>>> = {
  "tasks/get"(connection, params, ctx, engine) {
    return answerLegacyGet(connection, params, connection.owner(ctx), engine);
  },

  async "tasks/result"(connection, params, ctx, engine) {
    const owner = connection.owner(ctx);
    const taskId = taskIdOf(params);
    const view = await engine.get(owner, taskId, "result");
    const asker = askerOf(connection, params, view);
    if (asker === "draft") {
      const result = draft.encodeResult(view);
      engine.audit("result.retrieved", view.task);
      return result;
    }
    const ended = isTerminal(view.task.status) ? view : await blockForResult(connection, ctx, engine, taskId);
    engine.audit("result.retrieved", ended.task);
    return v2025.encodeResult(ended);
  },

  async "tasks/list"(connection, params, ctx, engine) {
    const owner = connection.owner(ctx);
    if (owner.kind === "anonymous") {
      throw new WorkflowError("not_supported", "tasks/list needs an owner: authenticate, or open a session");
    }
    const { cursor } = params;
    if (cursor !== undefined && typeof cursor !== "string") {
      throw new WorkflowError("invalid_cursor", "Invalid cursor: it must be a string");
    }
    const { views, nextCursor } = await engine.list(owner, cursor);
    const generation = generationOf(connection, params);
    const tasks = views.map((view) => listEntry(generation, view));
    return { tasks, ...(nextCursor !== undefined && { nextCursor }) };
  },

  async "tasks/cancel"(connection, params, ctx, engine) {
    const owner = connection.owner(ctx);
    const taskId = taskIdOf(params);
    const { task } = await engine.peek(owner, taskId);
    if (isTerminal(task.status)) throw alreadyEnded(task.status);
    const view = await engine.cancel(owner, taskId, "now");
    // Ended on its own in the moment between: the client must not read a cancel into it.
    if (view.task.status !== "cancelled") throw alreadyEnded(view.task.status);
    engine.audit("task.cancelled", view.task);
    return v2025.encodeTask(view);
  },

  async "tasks/delete"(connection, params, ctx, engine) {
    const taskId = taskIdOf(params);
    await engine.remove(connection.owner(ctx), taskId);
    return draft.encodeDeleted(taskId);
  },
};

/** The methods of 2026-07-28. All others of the name answer -32601, by not being there. */
export const MODERN_METHODS: Readonly<Partial<Record<TaskMethodName, MethodHandler>>> = {
  async "tasks/get"(connection, params, ctx, engine) {
    const capabilities = declared(connection, ctx);
    const view = await engine.get(connection.owner(ctx), taskIdOf(params));
    if (isTerminal(view.task.status)) engine.audit("result.retrieved", view.task);
    return v2026.encodeGet(view, capabilities);
  },

  async "tasks/update"(connection, params, ctx, engine) {
    declared(connection, ctx);
    // The SDK lifts inputResponses out of params, as it does for multi round-trip retries.
    const lifted = ctx.mcpReq.inputResponses ?? params.inputResponses;
    const responses = v2026.decodeInputResponses({ inputResponses: lifted as JsonObject });
    await engine.answer(connection.owner(ctx), taskIdOf(params), responses);
    return { resultType: "complete" };
  },

  async "tasks/cancel"(connection, params, ctx, engine) {
    declared(connection, ctx);
    const view = await engine.cancel(connection.owner(ctx), taskIdOf(params), "cooperative");
    engine.audit("cancel.requested", view.task);
    return { resultType: "complete" };
  },
};

/** `tasks/get` of the 2025 era. Needs no server instance: polls over HTTP are answered without one. */
export async function answerLegacyGet(
  speaker: Speaker,
  params: JsonObject,
  owner: Owner,
  engine: TaskEngine,
): Promise<JsonObject> {
  const view = await engine.get(owner, taskIdOf(params));
  return askerOf(speaker, params, view) === "draft" ? draft.encodeGet(view) : v2025.encodeTask(view);
}

/** Runs a method's handler. @throws WorkflowError, JsonRpcError */
export function answerMethod(
  handler: MethodHandler,
  connection: Connection,
  request: RawRequest,
  ctx: ServerContext,
  engine: TaskEngine,
): Promise<JsonObject> {
  return handler(connection, isJsonObject(request.params) ? request.params : {}, ctx, engine);
}

/** `tasks/result` of 2025-11-25 blocks until the task has ended, and asks its questions meanwhile. */
async function blockForResult(
  connection: Connection,
  ctx: ServerContext,
  engine: TaskEngine,
  taskId: string,
): Promise<TaskView> {
  const owner = connection.owner(ctx);
  const asker = askOnOpenCall(connection, ctx, engine, owner, "2025-11-25");
  try {
    return await engine.wait(owner, taskId, ({ task }) => isTerminal(task.status), {
      signal: connection.signal(ctx),
      onChange: asker.look,
    });
  } finally {
    asker.end();
  }
}

function declared(connection: Connection, ctx: ServerContext): JsonObject | undefined {
  const capabilities = connection.capabilities(ctx);
  if (!v2026.declaresTasks(capabilities)) throw v2026.missingTasks();
  return capabilities;
}

function taskIdOf(params: JsonObject): string {
  const { taskId } = params;
  if (typeof taskId !== "string")
    throw new WorkflowError("invalid_request", "Invalid params: taskId must be a string");
  if (taskId.length >= 1 && taskId.length <= 256) return taskId;
  // Never stored, so never found.
  throw new WorkflowError("task_not_found", "Task not found");
}

/** Whose words a request is in: what it carries, else what the client has spoken. */
function generationOf(speaker: Speaker, params: JsonObject): Speaker["spoken"] {
  const meta = isJsonObject(params._meta) ? params._meta : {};
  // Remembered: tasks/list carries nothing that tells its asker.
  if (RELATED_TASK.draft in meta) speaker.spoken = "draft";
  else if (RELATED_TASK["2025-11-25"] in meta) speaker.spoken = "2025-11-25";
  return speaker.spoken;
}

/** … else what made the task. */
function askerOf(speaker: Speaker, params: JsonObject, view: TaskView): Generation {
  return generationOf(speaker, params) ?? (view.task.generation === "draft" ? "draft" : "2025-11-25");
}

/** Without evidence of the asker's generation an entry carries the fields of both, with the statuses of the later one. */
function listEntry(generation: "draft" | "2025-11-25" | undefined, view: TaskView): JsonObject {
  if (generation === "draft") return draft.encodeTask(view);
  const entry = v2025.encodeTask(view);
  return generation === undefined ? { ...draft.encodeTask(view), ...entry } : entry;
}

function alreadyEnded(status: string): WorkflowError {
  return new WorkflowError(
    "task_terminal",
    `Cannot cancel task: it is already in terminal status '${status}'`,
  );
}
