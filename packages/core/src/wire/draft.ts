/** The founding draft, SEP-1686 as proposed in October 2025. Section numbers are its. */

import { WorkflowError } from "../contract/errors.js";
import { isJsonObject, type JsonObject } from "../contract/json.js";
import type { TaskView } from "../engine/engine.js";
import {
  DRAFT_TASK,
  INVALID_PARAMS,
  JsonRpcError,
  outcomeError,
  SERVER_ERROR,
  statusIn,
  withRelatedTask,
} from "./codec.js";

/** What a request for a task carries (3.1). */
export interface DraftTaskRequest {
  readonly taskId: string;
  readonly keepAlive?: number;
}

/** @returns `undefined` for a request that asks for no task. @throws WorkflowError `invalid_request` if it asks wrongly (4.2) */
export function decodeTaskRequest(meta: JsonObject | undefined): DraftTaskRequest | undefined {
  const asked = meta?.[DRAFT_TASK];
  if (asked === undefined) return undefined;
  if (!isJsonObject(asked) || typeof asked.taskId !== "string") {
    throw new WorkflowError(
      "invalid_request",
      `_meta["${DRAFT_TASK}"] must be { taskId: string, keepAlive?: number }`,
    );
  }
  const { taskId, keepAlive } = asked;
  if (keepAlive === undefined || keepAlive === null) return { taskId };
  if (typeof keepAlive !== "number" || !Number.isFinite(keepAlive) || keepAlive < 0) {
    throw new WorkflowError("invalid_request", "keepAlive must be a number of milliseconds, 0 or more");
  }
  return { taskId, keepAlive };
}

/** A task as `tasks/get` and `tasks/list` show it (6). */
export function encodeTask(view: TaskView): JsonObject {
  const { task, pollMs } = view;
  return {
    taskId: task.taskId,
    status: statusIn("draft", view),
    // Counts from the end of the task; always the real one (4.5).
    keepAlive: task.retentionMs,
    pollFrequency: pollMs,
    ...(task.outcome?.kind === "error" && { error: task.outcome.error.message }),
  };
}

/** The answer to `tasks/get` (3.2, 4.7). */
export function encodeGet(view: TaskView): JsonObject {
  return withRelatedTask("draft", view.task.taskId, encodeTask(view));
}

/** The answer to `tasks/result` (3.3). @throws JsonRpcError -32602 unless the task is `completed` (4.6) */
export function encodeResult(view: TaskView): JsonObject {
  const { task } = view;
  if (task.status === "completed" && task.outcome?.kind === "result") {
    return withRelatedTask("draft", task.taskId, task.outcome.result);
  }
  throw new JsonRpcError(
    INVALID_PARAMS,
    `Cannot retrieve result: Task status is '${task.status}', not 'completed'`,
  );
}

/** The answer to the original request when the work has ended. @throws JsonRpcError what the request would have thrown */
export function encodeOpenCall(view: TaskView): JsonObject {
  const { task } = view;
  if (task.outcome?.kind === "result") return withRelatedTask("draft", task.taskId, task.outcome.result);
  if (task.outcome?.kind === "error") throw outcomeError(task.outcome);
  throw new JsonRpcError(SERVER_ERROR, "Task was cancelled");
}

/** The answer to `tasks/delete` (3.6). */
export function encodeDeleted(taskId: string): JsonObject {
  return withRelatedTask("draft", taskId, {});
}

/** `notifications/tasks/created`: otherwise empty params (3.4). */
export function createdNotification(taskId: string): { method: string; params: JsonObject } {
  return { method: "notifications/tasks/created", params: withRelatedTask("draft", taskId, {}) };
}
