/** Tools for clients that know no Tasks: ask for a task, answer it, cancel it, list them. */
import type { ServerContext } from "@modelcontextprotocol/server";
import { z } from "zod";
import { WorkflowError } from "../contract/errors.js";
import type { JsonObject } from "../contract/json.js";
import { type CompiledSchema, checkAgainst, compileSchema } from "../contract/schema.js";
import { isTerminal } from "../contract/task.js";
import type { TaskEngine, TaskView } from "../engine/engine.js";
import { openQuestions } from "../wire/input.js";
import { askOnOpenCall } from "./ask.js";
import type { Connection } from "./connection.js";
import { endedResult, handle, summarize } from "./inline.js";

/** The longest that `task_status` waits, in seconds: hosts give up on a tool call after about a minute. */
const LONGEST_WAIT_S = 50;

/** A tool that Taskferry itself offers. */
export interface Companion {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly input: CompiledSchema;
  readonly annotations: JsonObject;
  answer(
    args: JsonObject,
    connection: Connection,
    ctx: ServerContext,
    engine: TaskEngine,
  ): Promise<JsonObject>;
}

const taskId = z.string().min(1).max(256).describe("The task's id, as the call that started it answered");

function companion(options: Omit<Companion, "input"> & { readonly input: z.ZodType }): Companion {
  return { ...options, input: compileSchema(options.input, "input", `input of ${options.name}`) };
}

/** All of them. Listed by configuration only: a 2026-07-28 tool list must not vary by connection. */
const COMPANIONS: readonly Companion[] = [
  companion({
    name: "task_status",
    title: "Task status and result",
    description:
      "Tells how a task that an earlier call started is doing, and gives its result once it has ended. " +
      "Set waitSeconds to wait for the result instead of asking again and again.",
    input: z.object({
      taskId,
      waitSeconds: z
        .number()
        .min(0)
        .max(LONGEST_WAIT_S)
        .optional()
        .describe("How long to wait for the end. Default 0"),
    }),
    annotations: { readOnlyHint: true },
    async answer(args, connection, ctx, engine) {
      const owner = connection.owner(ctx);
      const id = String(args.taskId);
      let view = await engine.get(owner, id);
      const waitMs = Number(args.waitSeconds ?? 0) * 1000;
      if (waitMs > 0 && !isTerminal(view.task.status))
        view = await waitFor(connection, ctx, engine, view, waitMs);
      if (isTerminal(view.task.status)) engine.audit("result.retrieved", view.task);
      return shown(engine, view);
    },
  }),
  companion({
    name: "task_answer",
    title: "Answer a task's question",
    description:
      "Answers a question that a task waits with. content holds the fields that the question asks for; leave key out " +
      "when the task asks only one question.",
    input: z.object({
      taskId,
      key: z.string().optional().describe("Which question, when there are several"),
      action: z.enum(["accept", "decline"]).optional().describe("Default accept"),
      content: z.record(z.string(), z.unknown()).optional().describe("The answer's fields"),
    }),
    annotations: { destructiveHint: false },
    async answer(args, connection, ctx, engine) {
      const owner = connection.owner(ctx);
      const id = String(args.taskId);
      const { questions } = await engine.peek(owner, id);
      const open = openQuestions(questions);
      const only = open.length === 1 ? open[0] : undefined;
      const key = args.key ?? only?.key;
      if (typeof key !== "string" || !open.some((question) => question.key === key)) {
        const keys = open.map((question) => question.key);
        throw new WorkflowError(
          "invalid_arguments",
          keys.length === 0
            ? "The task waits with no question"
            : `Say which question with key: ${keys.join(", ")}`,
        );
      }
      const given = {
        action: args.action ?? "accept",
        ...(args.content !== undefined && { content: args.content }),
      };
      await engine.answer(owner, id, { [key]: given });
      return shown(engine, await engine.peek(owner, id));
    },
  }),
  companion({
    name: "task_cancel",
    title: "Cancel a task",
    description: "Asks for a running task to be stopped. Some engines take a while; ask with task_status.",
    input: z.object({ taskId }),
    annotations: { destructiveHint: true, idempotentHint: true },
    async answer(args, connection, ctx, engine) {
      const view = await engine.cancel(connection.owner(ctx), String(args.taskId), "cooperative");
      if (isTerminal(view.task.status)) return shown(engine, view);
      const text = `A stop was asked for. Ask with the tool task_status whether task ${view.task.taskId} has ended.`;
      return { content: [{ type: "text", text }], structuredContent: { task: summarize(view) } };
    },
  }),
  companion({
    name: "task_list",
    title: "List tasks",
    description: "Lists your tasks, the newest first.",
    input: z.object({ cursor: z.string().optional().describe("nextCursor of the page before") }),
    annotations: { readOnlyHint: true },
    async answer(args, connection, ctx, engine) {
      const owner = connection.owner(ctx);
      if (owner.kind === "anonymous") {
        throw new WorkflowError(
          "not_supported",
          "Tasks can be listed only for a known owner: authenticate first",
        );
      }
      const cursor = args.cursor === undefined ? undefined : String(args.cursor);
      const { views, nextCursor } = await engine.list(owner, cursor);
      const page = {
        tasks: views.map((view) => ({ tool: view.task.workflow, ...summarize(view) })),
        ...(nextCursor !== undefined && { nextCursor }),
      };
      return { content: [{ type: "text", text: JSON.stringify(page, null, 2) }], structuredContent: page };
    },
  }),
];

/**
 * The companions that a server offers beside its workflows.
 * @throws WorkflowError `configuration` if a workflow is named as one of them
 */
export function companionsBeside(
  engine: TaskEngine,
  options: { readonly companions?: boolean },
): readonly Companion[] {
  if (options.companions === false) return [];
  const shared = COMPANIONS.find(({ name }) => engine.workflows.get(name)?.method === "tools/call");
  if (shared === undefined) return COMPANIONS;
  throw new WorkflowError(
    "configuration",
    `"${shared.name}" is a companion tool: name the workflow otherwise, or set companions to false`,
  );
}

/** Answers a companion's call. A mistake in its use is told to the model, as an error result. */
export async function callCompanion(
  tool: Companion,
  args: unknown,
  connection: Connection,
  ctx: ServerContext,
  engine: TaskEngine,
): Promise<JsonObject> {
  const checked = checkAgainst(tool.input, args ?? {}, "invalid_arguments", `arguments for "${tool.name}"`);
  return tool.answer(checked, connection, ctx, engine);
}

async function waitFor(
  connection: Connection,
  ctx: ServerContext,
  engine: TaskEngine,
  view: TaskView,
  timeoutMs: number,
): Promise<TaskView> {
  const owner = connection.owner(ctx);
  const asker = askOnOpenCall(connection, ctx, engine, owner, "2025-11-25");
  try {
    // A question is told at once: the model can answer it, or say it to its user.
    const asks = ({ questions }: TaskView) =>
      !connection.canAskLive(ctx) && openQuestions(questions).length > 0;
    return await engine.wait(owner, view.task.taskId, asks, {
      timeoutMs,
      signal: connection.patience(ctx),
      onChange: asker.look,
    });
  } finally {
    asker.end();
  }
}

function shown(engine: TaskEngine, view: TaskView): JsonObject {
  if (isTerminal(view.task.status)) {
    const { task } = view;
    if (task.method === "tools/call") return endedResult(view);
    const result = task.outcome?.kind === "result" ? task.outcome.result : endedResult(view);
    return { content: [{ type: "text", text: JSON.stringify(result) }] };
  }
  const workflow = engine.workflows.get(view.task.workflow);
  if (workflow !== undefined && workflow.method === "tools/call") return handle(workflow, view);
  const summary = summarize(view);
  return { content: [{ type: "text", text: JSON.stringify(summary) }], structuredContent: { task: summary } };
}
