/** Questions that come before the work: the `before` hook, asked over the row when the client could not be asked live. */
import type { Answer } from "../contract/adapter.js";
import { WorkflowError } from "../contract/errors.js";
import type { JsonObject } from "../contract/json.js";
import { isTerminal, type StoredQuestion, type Task } from "../contract/task.js";
import type { BeforeVerdict, Workflow } from "../contract/workflow.js";
import type { TaskStore } from "../store/task-store.js";
import { ending } from "./reconcile.js";
import type { TaskChange } from "./update.js";

/** Keys of these questions, kept apart from the keys that the engine's questions will have. */
export const BEFORE_PREFIX = "before.";

/** Asks the hook. @throws WorkflowError `invalid_arguments` if the hook throws: its message may quote what it was given. */
export async function askHook(
  workflow: Workflow,
  args: JsonObject,
  answers: Readonly<Record<string, Answer>>,
): Promise<BeforeVerdict> {
  if (workflow.before === undefined) return { proceed: true };
  try {
    return await workflow.before({ arguments: args, answers });
  } catch (cause) {
    throw new WorkflowError(
      "engine_rejected",
      `The check before "${workflow.name}" failed (${(cause as Error).name})`,
      { cause },
    );
  }
}

/** The answers to the hook's questions, under the hook's own keys. */
export function beforeAnswers(stored: readonly StoredQuestion[]): Record<string, Answer> {
  const answers: Record<string, Answer> = {};
  for (const { key, answer } of stored) {
    if (answer !== null && key.startsWith(BEFORE_PREFIX)) answers[key.slice(BEFORE_PREFIX.length)] = answer;
  }
  return answers;
}

/** What changes about a held task when its answers may have come in; `undefined`: still waiting. */
export async function stepBefore(
  workflow: Workflow,
  task: Task,
  store: TaskStore,
): Promise<((fresh: Task) => TaskChange | undefined) | undefined> {
  const change = await heldChange(workflow, task, store);
  // A cancel may have ended the task while the hook was asked.
  return change && ((fresh) => (isTerminal(fresh.status) ? undefined : change(fresh)));
}

async function heldChange(
  workflow: Workflow,
  task: Task,
  store: TaskStore,
): Promise<((fresh: Task) => TaskChange) | undefined> {
  const stored = await store.questions(task.owner, task.taskId);
  if (stored.some((question) => question.state === "open")) return undefined;
  const args = task.request.arguments as JsonObject;
  const answered = stored.filter((question) => question.state === "answered").map((question) => question.key);
  const verdict = await askHook(workflow, args, beforeAnswers(stored));
  if ("ask" in verdict) {
    const open = verdict.ask.map((question) => ({ ...question, key: BEFORE_PREFIX + question.key }));
    return () => ({
      patch: { status: "input_required" },
      questions: { open, delivered: answered },
      events: [],
    });
  }
  if ("refuse" in verdict) {
    const result = { content: [{ type: "text", text: verdict.refuse }], isError: true };
    return (fresh) => {
      const end = ending(
        fresh,
        { startPhase: "none" },
        "completed",
        { kind: "result", result },
        { native: "refused" },
        Date.now(),
      );
      return { ...end, questions: { open: [], delivered: answered } };
    };
  }
  const input = workflow.toNative(verdict.arguments ?? args);
  return () => ({
    patch: { status: "working", startPhase: "owed", input, dueAt: Date.now() },
    questions: { delivered: answered },
    events: [{ type: "task.status", detail: { status: "working" } }],
  });
}
