/** What every piece of owed work needs: a guarded call with its trace, the end of a task that cannot go on. */

import type { WorkflowErrorCode } from "../contract/errors.js";
import { isTerminal, type Task } from "../contract/task.js";
import type { Workflow } from "../contract/workflow.js";
import { counters, idForLog, type Logger, traced } from "../observe/observe.js";
import type { TaskPatch, TaskStore } from "../store/task-store.js";
import { type GuardedAdapter, NativeCallError } from "./guard.js";
import { ending } from "./reconcile.js";
import type { Timing } from "./timing.js";
import { updateTask } from "./update.js";

/** A workflow with its adapter made safe. */
export interface ServedWorkflow {
  readonly workflow: Workflow;
  readonly adapter: GuardedAdapter;
}

/** What owed work is done with. */
export interface WorkContext {
  readonly store: TaskStore;
  readonly timing: Timing;
  readonly log: Logger;
  /** What has been warned of already: a lying engine must not fill the log. */
  readonly warned: Set<string>;
  /** This server instance, as leases name it. */
  readonly holder: string;
}

/** Whether the engine is owed a stop. */
export function stopOwed(task: Task): boolean {
  return task.cancelRequestedAt !== null && task.cancelConfirmedAt === null;
}

/** Whether the task has ended, and nothing is left to do for it. */
export function nothingOwed(task: Task): boolean {
  return isTerminal(task.status) && !stopOwed(task);
}

/** Calls the engine in a span of its own, counted and timed by verdict. */
export function nativeCall<T>(
  operation: "start" | "find" | "read" | "stop" | "answer",
  task: Task,
  call: () => Promise<T>,
): Promise<T> {
  const { engine, runUrl } = task;
  const attributes = () => ({
    "taskferry.task": idForLog(task.taskId),
    "taskferry.engine": engine,
    ...(runUrl !== null && { "taskferry.run": runUrl }),
  });
  return traced(`taskferry.engine.${operation}`, attributes, async () => {
    const began = performance.now();
    let verdict = "ok";
    try {
      return await call();
    } catch (error) {
      verdict = error instanceof NativeCallError ? error.verdict.kind : "error";
      throw error;
    } finally {
      counters.nativeCalls.add(1, { operation, engine, verdict });
      counters.nativeDuration.record(performance.now() - began, { operation, engine, verdict });
    }
  });
}

/** An error of the engine; any other is thrown on. */
export function asNative(error: unknown): NativeCallError {
  if (error instanceof NativeCallError) return error;
  throw error;
}

/** Ends a task whose call cannot be carried out, or whose outcome is lost. */
export function fail(
  ctx: WorkContext,
  task: Task,
  code: WorkflowErrorCode,
  message: string,
  facts: TaskPatch = {},
): Promise<Task> {
  return updateTask(ctx, task, (fresh) => {
    const now = Date.now();
    if (isTerminal(fresh.status)) {
      // Cancelled meanwhile: the client's answer stands, and what was owed to the engine has come to an end too.
      const detail = { reason: code };
      return {
        patch: { ...facts, cancelConfirmedAt: now, dueAt: null },
        events: [{ type: "cancel.unresolved", detail }],
      };
    }
    return ending(
      fresh,
      facts,
      "failed",
      { kind: "error", error: { code, message } },
      { native: code, message },
      now,
    );
  });
}
