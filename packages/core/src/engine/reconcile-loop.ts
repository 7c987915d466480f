/** What a run that exists is owed: its stop, its answers, and reads at its pace. */
import type { RunState } from "../contract/adapter.js";
import { isWorkflowError } from "../contract/errors.js";
import { isTerminal, type Task } from "../contract/task.js";
import type { Workflow } from "../contract/workflow.js";
import { idForLog } from "../observe/observe.js";
import type { GuardedAdapter, NativeCallError } from "./guard.js";
import {
  asNative,
  fail,
  nativeCall,
  nothingOwed,
  type ServedWorkflow,
  stopOwed,
  type WorkContext,
} from "./pending.js";
import { reconcile } from "./reconcile.js";
import { backoffMs, stopDueAt } from "./timing.js";
import { updateTask } from "./update.js";

/**
 * What a run that exists is owed: its stop, its answers, and a read when it is time.
 * @param due the task's own time has come: nobody asked. Where only one process can reach the run (`unchanged` and `retry`
 *   in all others), a crowd that polls those must not keep putting off that one's turn.
 */
export async function reconcileRun(
  ctx: WorkContext,
  bound: Task,
  served: ServedWorkflow,
  due: boolean,
): Promise<Task> {
  let task = bound;
  if (stopOwed(task)) task = await stopRun(ctx, task, served);
  if (!isTerminal(task.status)) task = await deliverAnswers(ctx, task, served, due);
  const passedOver =
    due && bound.dueAt !== null && bound.lastReadAt !== null && bound.dueAt <= bound.lastReadAt;
  if (nothingOwed(task) || (task.nextReadAt > Date.now() && !passedOver)) return task;
  return readRun(ctx, task, served, due);
}

async function stopRun(ctx: WorkContext, task: Task, { adapter }: ServedWorkflow): Promise<Task> {
  const now = Date.now();
  const requestedAt = task.cancelRequestedAt ?? now;
  if (!adapter.canStop || now < stopDueAt(requestedAt, task.stopAttempts)) return task;
  const ref = task.runRef;
  const sent = task.stopAttempts;
  const next = stopDueAt(requestedAt, sent + 1);
  const counted = { stopAttempts: sent + 1, dueAt: next, nextReadAt: now };
  try {
    await nativeCall("stop", task, () =>
      adapter.stop(ref, { stopsSent: sent, requestedAgoMs: now - requestedAt }),
    );
    return await updateTask(ctx, task, () => ({ patch: counted, events: [{ type: "run.stop_sent" }] }));
  } catch (error) {
    const { verdict } = asNative(error);
    const detail = { verdict: verdict.kind, code: verdict.code };
    return updateTask(ctx, task, () => ({
      patch: counted,
      events: [{ type: "run.stop_failed", detail }],
    }));
  }
}

async function deliverAnswers(
  ctx: WorkContext,
  leased: Task,
  { adapter, workflow }: ServedWorkflow,
  due: boolean,
): Promise<Task> {
  let task = leased;
  const stored = await ctx.store.questions(task.owner, task.taskId);
  for (const question of stored) {
    if (question.state !== "answered" || question.answer === null) continue;
    const { key, answer } = question;
    try {
      await nativeCall("answer", task, () => adapter.answer(task.runRef, key, answer));
      task = await updateTask(ctx, task, () => ({
        patch: { nextReadAt: Date.now() },
        questions: { delivered: [key] },
        events: [{ type: "answer.delivered", detail: { key } }],
      }));
    } catch (error) {
      const { verdict } = asNative(error);
      const lost = verdict.kind === "gone" || verdict.kind === "rejected";
      const retryAt = Date.now() + Math.max(verdict.retryAfterMs ?? 0, workflow.pollMs);
      task = await updateTask(ctx, task, (fresh) => ({
        patch: lost
          ? { nextReadAt: Date.now(), message: `The answer could not be delivered: ${verdict.message}` }
          : { dueAt: due ? retryAt : Math.min(fresh.dueAt ?? retryAt, retryAt) },
        ...(lost && { questions: { gone: [key] } }),
        events: [{ type: lost ? "answer.lost" : "answer.deferred", detail: { key, code: verdict.code } }],
      }));
    }
  }
  return task;
}

async function readRun(
  ctx: WorkContext,
  task: Task,
  { adapter, workflow }: ServedWorkflow,
  due: boolean,
): Promise<Task> {
  const ageMs = Date.now() - (task.boundAt ?? task.createdAt);
  try {
    const state = await nativeCall("read", task, () =>
      adapter.read(task.runRef, {
        key: task.startKey,
        ageMs,
        ...(task.attempt !== null && { attempt: task.attempt }),
        ...(task.native !== null && { native: task.native }),
        isClaimed: (claim) => ctx.store.isClaimed(task.engine, claim, task),
      }),
    );
    // A read is the last thing that is owed: the lease goes back in the same write.
    return await applyState(ctx, task, state, workflow, { release: ctx.holder, due });
  } catch (error) {
    if (isWorkflowError(error) && error.code === "task_exists") {
      // Another task took the run that this read matched. Read again: it is told as claimed now.
      return updateTask(ctx, task, () => ({
        patch: { nextReadAt: Date.now() + workflow.pollMs },
        events: [],
      }));
    }
    return readFailed(ctx, task, asNative(error), adapter, workflow, ageMs);
  }
}

function readFailed(
  ctx: WorkContext,
  task: Task,
  error: NativeCallError,
  adapter: GuardedAdapter,
  workflow: Workflow,
  ageMs: number,
): Promise<Task> {
  const { verdict } = error;
  const now = Date.now();
  const mayStillAppear = !task.seen && ageMs < adapter.appearsWithinMs;
  if (verdict.kind === "gone" && !mayStillAppear) {
    if (isTerminal(task.status)) {
      return updateTask(ctx, task, () => ({
        patch: { cancelConfirmedAt: now, dueAt: null },
        events: [{ type: "cancel.confirmed", detail: { native: "gone" } }],
      }));
    }
    return fail(ctx, task, "run_lost", `The run is gone at ${task.engine}: ${verdict.message}`);
  }
  const wait = Math.max(verdict.retryAfterMs ?? 0, workflow.pollMs, backoffMs(task.readFailures));
  return updateTask(ctx, task, (fresh) => ({
    patch: {
      readFailures: fresh.readFailures + 1,
      failingSince: fresh.failingSince ?? now,
      nextReadAt: now + wait,
      dueAt: now + wait,
    },
    events: fresh.failingSince === null ? [{ type: "run.unreadable", detail: { code: verdict.code } }] : [],
    release: ctx.holder,
  }));
}

/** Writes what the engine said, and when it is to be asked again. */
export function applyState(
  ctx: WorkContext,
  task: Task,
  state: RunState,
  workflow: Workflow,
  flight: { readonly release?: string; readonly due?: boolean } = {},
): Promise<Task> {
  const release = flight.release === undefined ? {} : { release: flight.release };
  return updateTask(ctx, task, async (fresh) => {
    const now = Date.now();
    const stored = await ctx.store.questions(fresh.owner, fresh.taskId);
    const next = reconcile(fresh, stored, state, workflow, now);
    for (const warning of next.warnings) warnOnce(ctx, fresh, warning);
    if (state.status === "unchanged")
      warnOnce(ctx, fresh, `unknown native word ${JSON.stringify(state.native)}`);
    const ended = next.patch.endedAt !== undefined;
    if (ended || next.patch.cancelConfirmedAt !== undefined) return { ...next, ...release };
    const soonest = Math.max(workflow.pollMs, state.nextReadMs ?? 0);
    // A task that nobody polls is read ever more slowly.
    const age = now - (fresh.boundAt ?? now);
    const unpolled = Math.max(soonest, Math.min(age / 4, ctx.timing.slowestReadMs));
    const stopAt =
      stopOwed(fresh) && fresh.cancelRequestedAt !== null
        ? stopDueAt(fresh.cancelRequestedAt, fresh.stopAttempts)
        : Infinity;
    return {
      ...next,
      ...release,
      patch: {
        ...next.patch,
        nextReadAt: now + soonest,
        // A poll that has learned nothing leaves the task's own time as it is: another process may learn more.
        dueAt:
          state.status === "unchanged" && flight.due === false && fresh.dueAt !== null
            ? fresh.dueAt
            : Math.round(Math.min(now + unpolled, Math.max(stopAt, now + 1))),
      },
    };
  });
}

function warnOnce(ctx: WorkContext, task: Task, warning: string): void {
  const key = `${task.engine}:${warning}`;
  // Bounded: a lying engine must not fill memory with new words.
  if (ctx.warned.has(key) || ctx.warned.size >= 1000) return;
  ctx.warned.add(key);
  ctx.log.warn({ engine: task.engine, task: idForLog(task.taskId) }, warning);
}
