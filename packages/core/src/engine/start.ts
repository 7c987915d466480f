/** Starting a run once: written before it is tried, and found again when the answer was lost. */
import type { StartedRun } from "../contract/adapter.js";
import { isTerminal, type Task } from "../contract/task.js";
import { counters } from "../observe/observe.js";
import type { GuardedAdapter, NativeCallError } from "./guard.js";
import { asNative, fail, nativeCall, type ServedWorkflow, stopOwed, type WorkContext } from "./pending.js";
import { ending } from "./reconcile.js";
import { applyState } from "./reconcile-loop.js";
import { backoffMs } from "./timing.js";
import { updateTask } from "./update.js";

/** Starts a run that is owed, or finds out what became of an earlier start. */
export async function startRun(ctx: WorkContext, task: Task, served: ServedWorkflow): Promise<Task> {
  if (task.startPhase === "owed" && (isTerminal(task.status) || task.cancelRequestedAt !== null)) {
    return neverStart(ctx, task);
  }
  if (task.startPhase === "attempted") return resolveStart(ctx, task, served);
  return tryStart(ctx, task, served, task.startAttempts > 0);
}

/** Cancelled before anything was started: nothing is owed to the engine. */
function neverStart(ctx: WorkContext, task: Task): Promise<Task> {
  return updateTask(ctx, task, (fresh) => {
    const facts = { startPhase: "none", cancelConfirmedAt: Date.now(), dueAt: null } as const;
    if (isTerminal(fresh.status)) return { patch: facts, events: [{ type: "cancel.confirmed" }] };
    return ending(fresh, facts, "cancelled", { kind: "cancelled" }, { native: "never started" }, Date.now());
  });
}

async function tryStart(
  ctx: WorkContext,
  before: Task,
  served: ServedWorkflow,
  retry: boolean,
): Promise<Task> {
  const now = Date.now();
  // Promise 2: the attempt is on disk before the engine hears of it.
  const task = await updateTask(ctx, before, (fresh) => {
    // Cancelled in this very moment: what has not been tried is not tried any more.
    const called = isTerminal(fresh.status) || fresh.cancelRequestedAt !== null;
    if (fresh.startPhase === "none" || (fresh.startPhase === "owed" && called)) return undefined;
    return {
      patch: {
        startPhase: "attempted",
        startAttempts: fresh.startAttempts + 1,
        firstStartAt: fresh.firstStartAt ?? now,
        lastStartAt: now,
        dueAt: now + ctx.timing.leaseMs,
      },
      events: [{ type: "run.starting", detail: { attempt: fresh.startAttempts + 1 } }],
    };
  });
  return task.startPhase === "attempted" ? callStart(ctx, task, served, retry) : task;
}

/** The first start of a task whose attempt was written with its row. */
export function firstStart(ctx: WorkContext, task: Task, served: ServedWorkflow): Promise<Task> {
  // Nothing follows in this piece of work, so the lease goes back with the binding.
  return callStart(ctx, task, served, false, { release: ctx.holder });
}

async function callStart(
  ctx: WorkContext,
  task: Task,
  served: ServedWorkflow,
  retry: boolean,
  release?: { readonly release: string },
): Promise<Task> {
  try {
    const { startKey: key, input } = task;
    const run = await nativeCall("start", task, () => served.adapter.start({ key, input, retry }));
    return await bind(ctx, task, run, served, release);
  } catch (error) {
    return startFailed(ctx, task, asNative(error));
  }
}

function startFailed(ctx: WorkContext, task: Task, error: NativeCallError): Promise<Task> {
  const { kind, message, retryAfterMs } = error.verdict;
  const now = Date.now();
  const wait = Math.max(retryAfterMs ?? 0, backoffMs(task.startAttempts - 1));
  if (kind === "rejected" || kind === "gone")
    return fail(ctx, task, "engine_rejected", message, { startPhase: "none" });
  if (kind === "retry") {
    if (now - (task.firstStartAt ?? now) > ctx.timing.startGiveUpMs) {
      return fail(ctx, task, "engine_unavailable", message, { startPhase: "none" });
    }
    return updateTask(ctx, task, () => ({
      patch: { startPhase: "owed", dueAt: now + wait, nextReadAt: now + wait, message },
      events: [{ type: "run.start_deferred", detail: { waitMs: wait } }],
    }));
  }
  // It may have happened. The row stays `attempted`, and the next look resolves it.
  return updateTask(ctx, task, () => ({
    patch: { dueAt: now + wait, nextReadAt: now + wait },
    events: [{ type: "run.start_ambiguous", detail: { code: error.verdict.code } }],
  }));
}

/** An earlier start may have reached the engine: find its run, or start again only where that starts nothing new. */
async function resolveStart(ctx: WorkContext, task: Task, served: ServedWorkflow): Promise<Task> {
  const { adapter } = served;
  const called = isTerminal(task.status) || task.cancelRequestedAt !== null;
  // Starting again is safe at once where it starts nothing new; a search may have to wait for an engine's lists.
  if (adapter.startsOnce && !called) return tryStart(ctx, task, served, true);
  if (adapter.canFind) {
    const sought = await findRun(ctx, task, served);
    if (sought !== undefined) return sought;
  }
  // Cancelled meanwhile: starting again tells which run there is to stop.
  if (adapter.startsOnce) return tryStart(ctx, task, served, true);
  return outcomeUnknown(ctx, task, adapter);
}

/** @returns `undefined` if the search has come to nothing for good, and starting again may still help */
async function findRun(ctx: WorkContext, task: Task, served: ServedWorkflow): Promise<Task | undefined> {
  const { adapter } = served;
  const startedAtMs = task.firstStartAt ?? task.createdAt;
  const lastStartedAtMs = task.lastStartAt ?? startedAtMs;
  let found: StartedRun | undefined;
  try {
    found = await nativeCall("find", task, () =>
      adapter.find({
        key: task.startKey,
        input: task.input,
        startedAtMs,
        lastStartedAtMs,
        isClaimed: (claim) => ctx.store.isClaimed(task.engine, claim, task),
      }),
    );
  } catch (error) {
    const { verdict } = asNative(error);
    const now = Date.now();
    if (verdict.kind !== "rejected" && now - lastStartedAtMs < ctx.timing.findGiveUpMs) {
      const wait = Math.max(verdict.retryAfterMs ?? 0, backoffMs(task.startAttempts));
      const later = { dueAt: now + wait, nextReadAt: now + wait };
      return updateTask(ctx, task, () => ({ patch: later, events: [] }));
    }
    return adapter.startsOnce ? undefined : outcomeUnknown(ctx, task, adapter, verdict.message);
  }
  if (found !== undefined) return bind(ctx, task, found, served);
  const called = isTerminal(task.status) || task.cancelRequestedAt !== null;
  return called ? neverStart(ctx, task) : tryStart(ctx, task, served, true);
}

function outcomeUnknown(ctx: WorkContext, task: Task, adapter: GuardedAdapter, why?: string): Promise<Task> {
  const sentences = [
    `Start outcome unknown: ${adapter.engine} may or may not have started the run, and it was not started again.`,
    ...(why === undefined ? [] : [why.endsWith(".") ? why : `${why}.`]),
    ...(adapter.consoleUrl === undefined ? [] : [`Look at ${adapter.consoleUrl}`]),
  ];
  return fail(ctx, task, "start_outcome_unknown", sentences.join(" "), { startPhase: "none" });
}

async function bind(
  ctx: WorkContext,
  task: Task,
  run: StartedRun,
  { workflow }: ServedWorkflow,
  release?: { readonly release: string },
): Promise<Task> {
  const now = Date.now();
  counters.startLatency.record(now - task.createdAt, { engine: task.engine });
  const bound = await updateTask(ctx, task, (fresh) => ({
    patch: {
      startPhase: "bound",
      boundAt: now,
      runRef: run.ref,
      runUrl: run.url ?? fresh.runUrl,
      ...(run.claim !== undefined && { claim: run.claim }),
      nextReadAt: now,
      dueAt: isTerminal(fresh.status) && !stopOwed(fresh) ? null : now + workflow.pollMs,
    },
    events: [{ type: "run.started", detail: run.url === undefined ? {} : { url: run.url } }],
    ...(run.state === undefined && release),
  }));
  return run.state === undefined ? bound : applyState(ctx, bound, run.state, workflow, release);
}
