/** Changes of a row under its optimistic lock. */
import { isWorkflowError, WorkflowError } from "../contract/errors.js";
import { isTerminal, type Task } from "../contract/task.js";
import { type Logger, noteEnd } from "../observe/observe.js";
import type { KnownEvent, QuestionChanges, TaskPatch, TaskStore } from "../store/task-store.js";

/** What is to change. */
export interface TaskChange {
  readonly patch: TaskPatch;
  readonly questions?: QuestionChanges;
  readonly events: readonly KnownEvent[];
  /** The last write of a piece of work: gives this holder's lease back with it. */
  readonly release?: string;
}

/** Where rows are kept, and where it is told that one has ended. */
export interface Rows {
  readonly store: TaskStore;
  readonly log: Logger;
}

/**
 * Computes a change from the freshest row and writes it; again from a fresher row if somebody wrote in between.
 * @param compute gives `undefined` when there is nothing to change
 * @throws WorkflowError `task_not_found` if the row is gone, `stale_version` if it never holds still
 */
export async function updateTask(
  { store, log }: Rows,
  task: Task,
  compute: (fresh: Task) => TaskChange | undefined | Promise<TaskChange | undefined>,
): Promise<Task> {
  let fresh = task;
  for (let tries = 0; tries < 20; tries++) {
    const change = await compute(fresh);
    if (change === undefined) return fresh;
    const { patch, ...rest } = change;
    try {
      const changed = await store.update(fresh, patch, { ...rest, now: Date.now() });
      // Told by whoever wrote it, and only once it is written.
      if (!isTerminal(fresh.status) && isTerminal(changed.status)) noteEnd(log, changed);
      return changed;
    } catch (error) {
      if (!isWorkflowError(error) || error.code !== "stale_version") throw error;
      const current = await store.get(fresh.owner, fresh.taskId);
      if (current === undefined) throw new WorkflowError("task_not_found", "Task not found");
      fresh = current;
    }
  }
  throw new WorkflowError("stale_version", "The task changes too fast to be written; try again", {
    retryable: true,
  });
}
