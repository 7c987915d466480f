/** MCP 2026-07-28: the extension io.modelcontextprotocol/tasks (SEP-2663). */

import { WorkflowError } from "../contract/errors.js";
import { isJsonObject, type JsonObject } from "../contract/json.js";
import type { TaskView } from "../engine/engine.js";
import {
  isoTime,
  JsonRpcError,
  MISSING_CLIENT_CAPABILITY,
  outcomeError,
  statusIn,
  statusMessage,
  TASKS_EXTENSION,
  ttlOf,
} from "./codec.js";
import { askableQuestions, encodeInputRequests, openQuestions } from "./input.js";

/** Whether a request's declared client capabilities contain the extension. */
export function declaresTasks(capabilities: JsonObject | undefined): boolean {
  const extensions = capabilities?.extensions;
  return isJsonObject(extensions) && isJsonObject(extensions[TASKS_EXTENSION]);
}

/** What a client hears that has not declared the extension and needs it. */
export function missingTasks(): JsonRpcError {
  return new JsonRpcError(MISSING_CLIENT_CAPABILITY, "Missing required client capability", {
    requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } },
  });
}

/** The answer to `tools/call`: the flat task. */
export function encodeCreated(view: TaskView, capabilities: JsonObject | undefined): JsonObject {
  return { resultType: "task", ...encodeTask(view, capabilities) };
}

/** The answer to `tasks/get`: the task with its result, error or open questions inlined. */
export function encodeGet(view: TaskView, capabilities: JsonObject | undefined): JsonObject {
  return { resultType: "complete", ...encodeDetailed(view, capabilities) };
}

/** `notifications/tasks`: exactly what `tasks/get` would have answered, without its result type. */
export function taskNotification(
  view: TaskView,
  capabilities: JsonObject | undefined,
): { method: string; params: JsonObject } {
  return { method: "notifications/tasks", params: encodeDetailed(view, capabilities) };
}

/** The answers in `tasks/update`. @throws WorkflowError `invalid_request` */
export function decodeInputResponses(params: JsonObject): JsonObject {
  if (isJsonObject(params.inputResponses)) return params.inputResponses;
  throw new WorkflowError(
    "invalid_request",
    "inputResponses must be an object from input request keys to responses",
  );
}

function encodeDetailed(view: TaskView, capabilities: JsonObject | undefined): JsonObject {
  const { outcome } = view.task;
  return {
    ...encodeTask(view, capabilities),
    // What the request would have answered in this revision: the official client insists on the result type.
    ...(outcome?.kind === "result" && { result: { resultType: "complete", ...outcome.result } }),
    ...(outcome?.kind === "error" && { error: errorObject(outcomeError(outcome)) }),
    ...inputRequestsOf(view, capabilities),
  };
}

function encodeTask(view: TaskView, capabilities: JsonObject | undefined): JsonObject {
  const { task, pollMs } = view;
  const shown = showsQuestions(view, capabilities);
  const message = task.status === "input_required" && !shown ? unaskable(view) : statusMessage(view);
  return {
    taskId: task.taskId,
    // A client that cannot be asked would wait for input requests that never come.
    status: task.status === "input_required" && !shown ? "working" : statusIn("2026-07-28", view),
    ...(message !== undefined && { statusMessage: message }),
    createdAt: isoTime(task.createdAt),
    lastUpdatedAt: isoTime(task.updatedAt),
    ttlMs: ttlOf(view),
    pollIntervalMs: pollMs,
  };
}

function showsQuestions(view: TaskView, capabilities: JsonObject | undefined): boolean {
  return askableQuestions(view.questions, capabilities).length > 0;
}

function inputRequestsOf(view: TaskView, capabilities: JsonObject | undefined): JsonObject {
  if (view.task.status !== "input_required") return {};
  const questions = askableQuestions(view.questions, capabilities);
  return questions.length === 0 ? {} : { inputRequests: encodeInputRequests(questions) };
}

function unaskable({ task, questions }: TaskView): string {
  const waiting = openQuestions(questions).map((question) => `"${question.message}"`);
  const where = task.runUrl === null ? "with a client that declares elicitation" : `at ${task.runUrl}`;
  return `Waits for an answer that this client cannot be asked for: ${waiting.join(", ")}. Answer it ${where}, or with the tool task_answer.`;
}

function errorObject(error: JsonRpcError): JsonObject {
  return { code: error.code, message: error.message, ...(error.data !== undefined && { data: error.data }) };
}
