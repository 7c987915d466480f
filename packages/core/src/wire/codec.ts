/**
 * The door between tasks and the wire: which method exists in which generation, what canonical statuses are called
 * there, and how errors become JSON-RPC errors. The codecs beside it say how each generation writes a task.
 */

import { isWorkflowError, type WorkflowErrorCode } from "../contract/errors.js";
import type { JsonObject } from "../contract/json.js";
import type { Generation, TaskOutcome, TaskStatus } from "../contract/task.js";
import type { TaskView } from "../engine/engine.js";

/** The meta key of related tasks, by generation; 2026-07-28 has none. */
export const RELATED_TASK = {
  draft: "modelcontextprotocol.io/related-task",
  "2025-11-25": "io.modelcontextprotocol/related-task",
} as const;

/** The draft's request for a task. */
export const DRAFT_TASK = "modelcontextprotocol.io/task";
/** The extension of 2026-07-28. */
export const TASKS_EXTENSION = "io.modelcontextprotocol/tasks";
export const CLIENT_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities";
export const SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId";
/** Ours: makes a retried call the same call, in every generation. */
export const IDEMPOTENCY_KEY = "taskferry.dev/idempotency-key";

/** Which eras answer which task method; the others answer -32601. A connection speaks one era. */
export const TASK_METHODS = {
  "tasks/get": ["legacy", "modern"],
  "tasks/result": ["legacy"],
  "tasks/list": ["legacy"],
  "tasks/delete": ["legacy"],
  "tasks/cancel": ["legacy", "modern"],
  "tasks/update": ["modern"],
} as const satisfies Record<string, readonly ("legacy" | "modern")[]>;

export type TaskMethodName = keyof typeof TASK_METHODS;

/** An error on its way to the wire. */
export class JsonRpcError extends Error {
  override readonly name = "JsonRpcError";
  constructor(
    readonly code: number,
    message: string,
    readonly data?: JsonObject,
  ) {
    super(message);
  }
}

export const METHOD_NOT_FOUND = -32601;
export const INVALID_PARAMS = -32602;
export const INTERNAL_ERROR = -32603;
/** Server-defined: a cancelled task's result (2025-11-25), a limit that was hit. */
export const SERVER_ERROR = -32000;
export const MISSING_CLIENT_CAPABILITY = -32021;

const CODES: Readonly<Record<WorkflowErrorCode, number>> = {
  task_not_found: INVALID_PARAMS,
  task_expired: INVALID_PARAMS,
  task_exists: INVALID_PARAMS,
  task_terminal: INVALID_PARAMS,
  idempotency_conflict: INVALID_PARAMS,
  invalid_arguments: INVALID_PARAMS,
  invalid_cursor: INVALID_PARAMS,
  invalid_request: INVALID_PARAMS,
  unknown_workflow: INVALID_PARAMS,
  not_supported: INVALID_PARAMS,
  limit_exceeded: SERVER_ERROR,
  engine_rejected: INTERNAL_ERROR,
  engine_unavailable: INTERNAL_ERROR,
  start_outcome_unknown: INTERNAL_ERROR,
  run_lost: INTERNAL_ERROR,
  contract_violated: INTERNAL_ERROR,
  illegal_transition: INTERNAL_ERROR,
  stale_version: INTERNAL_ERROR,
  store_unavailable: INTERNAL_ERROR,
  configuration: INTERNAL_ERROR,
  closed: INTERNAL_ERROR,
};

const VERBS: Readonly<Record<string, string>> = {
  "tasks/get": "retrieve task",
  "tasks/result": "retrieve task",
  "tasks/delete": "delete task",
  "tasks/cancel": "cancel task",
  "tasks/update": "update task",
};

/**
 * Any error, as the JSON-RPC error of a method. What is not ours says nothing of itself: it may quote anything.
 * "Task not found" and "Task has expired" are two messages of one code (SEP-1686, 7.1).
 */
export function toJsonRpcError(error: unknown, method: string): JsonRpcError {
  if (error instanceof JsonRpcError) return error;
  if (!isWorkflowError(error)) return new JsonRpcError(INTERNAL_ERROR, "Internal error");
  const verb = VERBS[method];
  const missing = error.code === "task_not_found" || error.code === "task_expired";
  const message = missing && verb !== undefined ? `Failed to ${verb}: ${error.message}` : error.message;
  return new JsonRpcError(CODES[error.code] ?? INTERNAL_ERROR, message, error.data as JsonObject | undefined);
}

/** A stored error outcome, as the error that the original request would have answered. */
export function outcomeError(outcome: Extract<TaskOutcome, { kind: "error" }>): JsonRpcError {
  const { code, message, data } = outcome.error;
  return new JsonRpcError(CODES[code] ?? INTERNAL_ERROR, message, { reason: code, ...data });
}

const PROJECTION: Readonly<Record<TaskStatus, Readonly<Record<Generation, string>>>> = {
  submitted: { draft: "submitted", "2025-11-25": "working", "2026-07-28": "working" },
  working: { draft: "working", "2025-11-25": "working", "2026-07-28": "working" },
  input_required: { draft: "input_required", "2025-11-25": "input_required", "2026-07-28": "input_required" },
  completed: { draft: "completed", "2025-11-25": "completed", "2026-07-28": "completed" },
  failed: { draft: "failed", "2025-11-25": "failed", "2026-07-28": "failed" },
  cancelled: { draft: "cancelled", "2025-11-25": "cancelled", "2026-07-28": "cancelled" },
  unknown: { draft: "unknown", "2025-11-25": "failed", "2026-07-28": "failed" },
};

/** What a generation calls a task's status. A result with `isError` is `completed`, but `failed` in 2025-11-25. */
export function statusIn(generation: Generation, { task }: TaskView): string {
  const ranAndFailed = task.outcome?.kind === "result" && task.outcome.result.isError === true;
  if (generation === "2025-11-25" && ranAndFailed) return "failed";
  return PROJECTION[task.status][generation];
}

/** One line about the task, with how long its engine has been silent. */
export function statusMessage({ task }: TaskView): string | undefined {
  const said =
    task.message ?? (task.startPhase === "owed" || task.startPhase === "attempted" ? "Starting" : undefined);
  if (task.failingSince === null) return said;
  const silent = `${task.engine} cannot be read since ${new Date(task.failingSince).toISOString()}`;
  return said === undefined ? silent : `${said} (${silent})`;
}

/** What `ttl` and `ttlMs` say: nothing discards a running task; an ended one counts from its creation. */
export function ttlOf({ task }: TaskView): number | null {
  return task.endedAt === null ? null : task.endedAt - task.createdAt + task.retentionMs;
}

export function isoTime(epochMs: number): string {
  return new Date(epochMs).toISOString();
}

/** Adds a related-task entry to a message's `_meta`, keeping what is there. */
export function withRelatedTask(
  generation: "draft" | "2025-11-25",
  taskId: string,
  message: JsonObject,
): JsonObject {
  const meta = message._meta;
  const kept = typeof meta === "object" && meta !== null && !Array.isArray(meta) ? meta : {};
  return { ...message, _meta: { ...kept, [RELATED_TASK[generation]]: { taskId } } };
}
