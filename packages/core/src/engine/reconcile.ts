/** From what an engine says about a run to what changes in its row. Pure: no clock, no store, no engine. */
import type { Question, RunState } from "../contract/adapter.js";
import { isJsonObject, type JsonObject } from "../contract/json.js";
import {
  isTerminal,
  mayBecome,
  type StoredQuestion,
  type Task,
  type TaskOutcome,
  type TaskStatus,
} from "../contract/task.js";
import type { Workflow } from "../contract/workflow.js";
import type { TaskPatch } from "../store/task-store.js";
import { outcomeOf } from "./result.js";
import type { TaskChange } from "./update.js";

/** What one native state changes. */
export interface Reconciled extends TaskChange {
  /** Native words and moves that were not followed, for the log. */
  readonly warnings: readonly string[];
}

/** @param stored all questions ever asked on this task */
export function reconcile(
  task: Task,
  stored: readonly StoredQuestion[],
  state: RunState,
  workflow: Workflow,
  now: number,
): Reconciled {
  const ended = isTerminal(task.status);
  const warnings: string[] = [];
  const facts: TaskPatch = {
    native: state.native,
    seen: true,
    lastReadAt: now,
    readFailures: 0,
    failingSince: null,
    ...(state.url !== undefined && { runUrl: state.url }),
    ...(state.ref !== undefined && { runRef: state.ref }),
    ...(state.claim !== undefined && { claim: state.claim }),
  };

  if (ended) {
    // Only an owed stop still reads a task that has ended for its client: it waits for the run to end too.
    const runEnded = endsRun(state.status);
    return {
      patch: {
        ...facts,
        ...(runEnded && task.cancelConfirmedAt === null && { cancelConfirmedAt: now, dueAt: null }),
      },
      events:
        runEnded && task.cancelConfirmedAt === null
          ? [{ type: "cancel.confirmed", detail: { native: state.native } }]
          : [],
      warnings,
    };
  }

  if (state.attempt !== undefined && task.attempt !== null && state.attempt !== task.attempt) {
    warnings.push(
      `attempt ${state.attempt} of the run follows attempt ${task.attempt} while the task still runs`,
    );
  }
  const attempt: TaskPatch = state.attempt === undefined ? {} : { attempt: state.attempt };

  if (state.status === "unchanged") {
    return { patch: { ...facts, ...attempt, ...said(task, state) }, events: [], warnings };
  }

  const outcome = outcomeFor(task, state, workflow);
  if (outcome !== undefined) {
    return ending(task, { ...facts, ...attempt }, terminalStatus(state), outcome, state, now, warnings);
  }

  const open = state.questions ?? [];
  const status = openStatus(task, stored, state, open, warnings);
  const changed = status !== task.status;
  return {
    patch: {
      ...facts,
      ...attempt,
      ...said(task, state),
      ...(changed && { status }),
      ...(state.progress !== undefined && { progress: state.progress }),
    },
    // Asked before every write otherwise: most runs never ask anything.
    ...((open.length > 0 || stored.some((question) => question.state === "open")) && { questions: { open } }),
    events: changed ? [{ type: "task.status", detail: { status, native: state.native } }] : [],
    warnings,
  };
}

/** What ends a task, whatever brought it about. */
export function ending(
  task: Task,
  facts: TaskPatch,
  status: TaskStatus,
  outcome: TaskOutcome,
  state: Pick<RunState, "native" | "message">,
  now: number,
  warnings: readonly string[] = [],
): Reconciled {
  return {
    patch: {
      ...facts,
      status,
      outcome,
      message: state.message ?? defaultMessage(task, outcome),
      endedAt: now,
      expiresAt: now + task.retentionMs,
      dueAt: null,
      ...(task.cancelRequestedAt !== null && { cancelConfirmedAt: now }),
    },
    questions: { open: [] },
    events: [{ type: "task.ended", detail: { status, native: state.native, outcome: outcome.kind } }],
    warnings,
  };
}

function endsRun(status: RunState["status"]): boolean {
  return status === "completed" || status === "failed" || status === "cancelled" || status === "unknown";
}

function said(task: Task, state: RunState): TaskPatch {
  if (state.message === undefined || state.message === task.message) return {};
  return { message: state.message.slice(0, 1000) };
}

function openStatus(
  task: Task,
  stored: readonly StoredQuestion[],
  state: RunState,
  open: readonly Question[],
  warnings: string[],
): TaskStatus {
  const known = new Map(stored.map((question) => [question.key, question.state]));
  const waiting = open.some((question) => (known.get(question.key) ?? "open") === "open");
  // An answer may be on its way to the engine, which still says that it waits: for the client that is work.
  const wanted: TaskStatus =
    state.status === "submitted" && !waiting ? "submitted" : waiting ? "input_required" : "working";
  if (mayBecome(task.status, wanted)) return wanted;
  // Engines go back ("queued" again after an approval); a task does not (SEP-1686, 4.3).
  if (wanted === "submitted") return "working";
  warnings.push(`${task.status} may not become ${wanted}`);
  return task.status;
}

function terminalStatus(state: RunState): TaskStatus {
  return state.status as Extract<TaskStatus, RunState["status"]>;
}

function outcomeFor(task: Task, state: RunState, workflow: Workflow): TaskOutcome | undefined {
  const { failure } = state;
  switch (state.status) {
    case "completed":
      return outcomeOf(workflow, {
        arguments: argumentsOf(task),
        ...(typeof task.request.uri === "string" && { uri: task.request.uri }),
        output: state.output,
        failure,
        url: state.url ?? task.runUrl ?? undefined,
      });
    case "cancelled":
      return { kind: "cancelled" };
    case "failed":
      return {
        kind: "error",
        error: {
          code: "engine_rejected",
          message:
            failure === undefined ? `${task.engine}: ${state.native}` : `${failure.code}: ${failure.message}`,
        },
      };
    case "unknown":
      return {
        kind: "error",
        error: {
          code: "run_lost",
          message: failure?.message ?? `${task.engine} cannot say how the run ended (${state.native})`,
        },
      };
    default:
      return undefined;
  }
}

function argumentsOf(task: Task): JsonObject {
  const args = task.request.arguments;
  return isJsonObject(args) ? args : {};
}

function defaultMessage(task: Task, outcome: TaskOutcome): string | null {
  if (outcome.kind === "error") return outcome.error.message;
  if (outcome.kind === "cancelled") return "Cancelled";
  return task.message;
}
