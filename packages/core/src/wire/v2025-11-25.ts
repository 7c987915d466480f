/** MCP 2025-11-25, basic/utilities/tasks (core, experimental). */

import { WorkflowError } from "../contract/errors.js";
import { isJsonObject, type JsonObject } from "../contract/json.js";
import type { TaskView } from "../engine/engine.js";
import {
  isoTime,
  JsonRpcError,
  outcomeError,
  SERVER_ERROR,
  statusIn,
  statusMessage,
  ttlOf,
  withRelatedTask,
} from "./codec.js";

/** What hosts show their model while the task runs. */
const IMMEDIATE_RESPONSE = "io.modelcontextprotocol/model-immediate-response";

/** @returns `undefined` for a request that asks for no task. @throws WorkflowError `invalid_request` if it asks wrongly */
export function decodeTaskRequest(params: JsonObject): { readonly ttl?: number } | undefined {
  const asked = params.task;
  if (asked === undefined) return undefined;
  if (!isJsonObject(asked))
    throw new WorkflowError("invalid_request", "params.task must be { ttl?: number }");
  const { ttl } = asked;
  if (ttl === undefined || ttl === null) return {};
  if (typeof ttl !== "number" || !Number.isFinite(ttl) || ttl < 0) {
    throw new WorkflowError("invalid_request", "params.task.ttl must be a number of milliseconds, 0 or more");
  }
  return { ttl };
}

/** `Task`. */
export function encodeTask(view: TaskView): JsonObject {
  const { task, pollMs } = view;
  const message = statusMessage(view);
  return {
    taskId: task.taskId,
    status: statusIn("2025-11-25", view),
    ...(message !== undefined && { statusMessage: message }),
    createdAt: isoTime(task.createdAt),
    lastUpdatedAt: isoTime(task.updatedAt),
    ttl: ttlOf(view),
    pollInterval: pollMs,
  };
}

/** `CreateTaskResult`. */
export function encodeCreated(view: TaskView): JsonObject {
  const text = `Started. The work goes on as task ${view.task.taskId}; its result comes later.`;
  return withRelatedTask("2025-11-25", view.task.taskId, {
    task: encodeTask(view),
    _meta: { [IMMEDIATE_RESPONSE]: text },
  });
}

/** The answer to `tasks/result` once the task has ended. @throws JsonRpcError what the request would have thrown */
export function encodeResult({ task }: TaskView): JsonObject {
  if (task.outcome?.kind === "result") return withRelatedTask("2025-11-25", task.taskId, task.outcome.result);
  if (task.outcome?.kind === "error") throw outcomeError(task.outcome);
  throw new JsonRpcError(SERVER_ERROR, "Task was cancelled");
}

/** `notifications/tasks/status`. */
export function statusNotification(view: TaskView): { method: string; params: JsonObject } {
  return { method: "notifications/tasks/status", params: encodeTask(view) };
}
