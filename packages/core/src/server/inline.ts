/** Clients that know no Tasks: the call waits inline for a while, then answers a handle to ask with later. */
import type { ServerContext } from "@modelcontextprotocol/server";
import type { Json, JsonObject } from "../contract/json.js";
import type { Owner } from "../contract/owner.js";
import { isTerminal } from "../contract/task.js";
import type { Workflow } from "../contract/workflow.js";
import type { TaskEngine, TaskView } from "../engine/engine.js";
import { JsonRpcError, outcomeError, SERVER_ERROR, statusIn, statusMessage } from "../wire/codec.js";
import { askableQuestions, canAsk, encodeInputRequests, openQuestions } from "../wire/input.js";
import { askOnOpenCall } from "./ask.js";
import type { Connection } from "./connection.js";

/** The purpose under which request states that rejoin a task are signed. */
export const REJOIN = "rejoin";

/** What a plain call is answered with when the work goes on. */
export const HANDLE_SCHEMA: JsonObject = {
  type: "object",
  description: "The work goes on. Ask for it with the tool task_status.",
  properties: {
    task: {
      type: "object",
      properties: {
        taskId: { type: "string" },
        status: { type: "string" },
        message: { type: "string" },
        url: { type: "string" },
        questions: { type: "array", items: { type: "object" } },
      },
      required: ["taskId", "status"],
    },
  },
  required: ["task"],
};

/** What a workflow that ran and failed is answered with. */
export const FAILURE_SCHEMA: JsonObject = {
  type: "object",
  properties: {
    error: {
      type: "object",
      properties: { code: { type: "string" }, message: { type: "string" }, url: { type: "string" } },
      required: ["code", "message"],
    },
    detail: {},
  },
  required: ["error"],
};

/** Waits for a task on a plain call. @throws JsonRpcError what the call itself would have answered */
export async function waitInline(
  connection: Connection,
  ctx: ServerContext,
  engine: TaskEngine,
  owner: Owner,
  workflow: Workflow,
  view: TaskView,
  inlineWaitMs: number,
): Promise<JsonObject> {
  const { taskId } = view.task;
  const asker = askOnOpenCall(connection, ctx, engine, owner, "2025-11-25");
  const progress = progressReporter(ctx);
  const capabilities = connection.capabilities(ctx);
  const mustReturn = (current: TaskView) => {
    const open = openQuestions(current.questions);
    if (open.length === 0) return false;
    // 2026-07-28 has no requests from the server: the question goes out as the answer, and the client comes back with
    // it. A client that cannot be asked at all gets the question in words, at once.
    return (
      connection.isModern ||
      !connection.canAskLive(ctx) ||
      !open.some((question) => canAsk(capabilities, question))
    );
  };
  const gone = connection.signal(ctx);
  let last: TaskView;
  try {
    last = await engine.wait(owner, taskId, mustReturn, {
      timeoutMs: inlineWaitMs,
      signal: connection.patience(ctx),
      onChange: (current) => {
        asker.look(current);
        progress(current);
      },
    });
  } finally {
    asker.end();
  }
  if (gone.aborted && !isTerminal(last.task.status)) {
    // Nobody hears an answer any more. The run goes on, unless the workflow says otherwise.
    if (workflow.onAbandon === "stop") await engine.cancel(owner, taskId, "cooperative");
    throw new JsonRpcError(SERVER_ERROR, "The call was abandoned");
  }
  if (isTerminal(last.task.status)) return endedResult(last);
  if (connection.isModern && askableQuestions(last.questions, capabilities).length > 0) {
    return inputRequired(engine, owner, last, capabilities);
  }
  return handle(workflow, last);
}

/** The real answer of the original request. @throws JsonRpcError */
export function endedResult({ task }: TaskView): JsonObject {
  if (task.outcome?.kind === "result") return task.outcome.result;
  if (task.outcome?.kind === "error") throw outcomeError(task.outcome);
  if (task.method !== "tools/call") throw new JsonRpcError(SERVER_ERROR, "The run was cancelled");
  return { content: [{ type: "text", text: "The run was cancelled." }], isError: true };
}

/** The handle, in words and as data. */
export function handle(workflow: Workflow, view: TaskView): JsonObject {
  const { task } = view;
  const questions = openQuestions(view.questions);
  const message = statusMessage(view);
  const lines = [
    `The work goes on as task ${task.taskId} (${statusIn("2025-11-25", view)}${message === undefined ? "" : `: ${message}`}).`,
    ...(task.runUrl === null ? [] : [`Follow it at ${task.runUrl}.`]),
    ...questions.map((question) => describeQuestion(question)),
    questions.length === 0
      ? "Ask for its result later with the tool task_status."
      : "Answer with the tool task_answer, then ask for the result with task_status.",
  ];
  const text = lines.join("\n");
  if (workflow.method === "prompts/get")
    return { messages: [{ role: "user", content: { type: "text", text } }] };
  if (workflow.method === "resources/read") {
    return { contents: [{ uri: task.request.uri ?? "", mimeType: "text/plain", text }] };
  }
  return { content: [{ type: "text", text }], structuredContent: { task: summarize(view) } };
}

/** A task as data, for the handle and the companion tools. */
export function summarize(view: TaskView): JsonObject {
  const { task } = view;
  const message = statusMessage(view);
  const questions: Json[] = openQuestions(view.questions).map(({ key, message: text, schema }) => ({
    key,
    message: text,
    ...(schema !== null && { schema }),
  }));
  return {
    taskId: task.taskId,
    status: statusIn("2025-11-25", view),
    ...(message !== undefined && { message }),
    ...(task.runUrl !== null && { url: task.runUrl }),
    ...(questions.length > 0 && { questions }),
  };
}

function describeQuestion(question: {
  key: string;
  message: string;
  schema: JsonObject | null;
  url: string | null;
}): string {
  const fields = Object.keys((question.schema?.properties as JsonObject | undefined) ?? {});
  const form = fields.length === 0 ? "" : ` (fields: ${fields.join(", ")})`;
  const where = question.url === null ? "" : ` Open ${question.url}.`;
  return `It asks [${question.key}]: ${question.message}${form}${where}`;
}

function inputRequired(
  engine: TaskEngine,
  owner: Owner,
  view: TaskView,
  capabilities: JsonObject | undefined,
): JsonObject {
  return {
    resultType: "input_required",
    inputRequests: encodeInputRequests(askableQuestions(view.questions, capabilities)),
    requestState: engine.seal(REJOIN, owner, { taskId: view.task.taskId }),
  };
}

/** Sends `notifications/progress` that only ever grows, where the client gave a token. */
function progressReporter(ctx: ServerContext): (view: TaskView) => void {
  const token = ctx.mcpReq._meta?.progressToken;
  if (token === undefined) return () => {};
  let sent = -1;
  let said = "";
  return (view) => {
    const { progress, status } = view.task;
    // The end is told by the answer itself.
    if (isTerminal(status)) return;
    const message = statusMessage(view);
    const now = JSON.stringify([progress, status, message]);
    if (now === said) return;
    said = now;
    // The token demands growth; a run may tell a new message without having come further.
    sent = Math.max(progress?.done ?? 0, Math.round((sent + 0.001) * 1000) / 1000);
    const total = progress?.total;
    void ctx.mcpReq
      .notify({
        method: "notifications/progress",
        params: {
          progressToken: token,
          progress: sent,
          ...(total !== undefined && total >= sent && { total }),
          ...(message !== undefined && { message }),
        },
      })
      .catch(() => {});
  };
}
