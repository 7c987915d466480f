/**
 * The work that a task is owed: start, stop, answers, reads. Every piece is taken under the row's lease and written to
 * the row before and after the engine is called, so a fresh process does what a dead one left, and nothing twice.
 */

import type { RunState, StartedRun } from "./adapter.js";
import { changeTask, type TaskChange } from "./change.js";
import type { WorkflowErrorCode } from "./errors.js";
import { isWorkflowError } from "./errors.js";
import { type GuardedAdapter, NativeCallError } from "./guard.js";
import { heldStep } from "./held.js";
import { counters, idForLog, type Logger, traced } from "./observe.js";
import { ending, type Reconciled, reconcile } from "./reconcile.js";
import type { TaskStore } from "./store/task-store.js";
import { isTerminal, type Task } from "./task.js";
import { backoffMs, stopDueAt, type Timing } from "./timing.js";
import type { Workflow } from "./workflow.js";

/** A workflow with its adapter made safe. */
export interface ServedWorkflow {
  readonly workflow: Workflow;
  readonly adapter: GuardedAdapter;
}

export interface WorkOptions {
  readonly store: TaskStore;
  readonly served: ReadonlyMap<string, ServedWorkflow>;
  readonly holder: string;
  readonly timing: Timing;
  readonly log: Logger;
}

/** Does owed work, one task at a time per process (single flight) and per database (lease). */
export class Work {
  private readonly flights = new Map<string, { readonly since: number; readonly done: Promise<void> }>();
  private readonly warned = new Set<string>();
  private closed = false;

  constructor(private readonly options: WorkOptions) {}

  /** Whether a flight on this task has been going on for at least this long, in milliseconds. */
  isStuck(owner: string, taskId: string, forMs: number): boolean {
    const flight = this.flights.get(keyOf(owner, taskId));
    return flight !== undefined && Date.now() - flight.since >= forMs;
  }

  /** Does what is owed now, joining a flight that is under way. Never throws. */
  run(owner: string, taskId: string): Promise<void> {
    return this.fly(owner, taskId, async () => {
      const now = Date.now();
      const lease = { holder: this.options.holder, now, until: now + this.options.timing.leaseMs };
      return this.options.store.lease(owner, taskId, lease);
    });
  }

  /** The same for a task whose lease this process already holds. */
  runLeased(task: Task): Promise<void> {
    return this.fly(task.owner, task.taskId, async () => task);
  }

  /** Waits for flights; new ones are refused. */
  async drain(): Promise<void> {
    this.closed = true;
    await Promise.allSettled([...this.flights.values()].map((flight) => flight.done));
  }

  private fly(owner: string, taskId: string, take: () => Promise<Task | undefined>): Promise<void> {
    const key = keyOf(owner, taskId);
    const current = this.flights.get(key);
    if (current !== undefined) {
      counters.coalescedPolls.add(1);
      return current.done;
    }
    if (this.closed) return Promise.resolve();
    const done = this.attempt(owner, taskId, take).finally(() => this.flights.delete(key));
    this.flights.set(key, { since: Date.now(), done });
    return done;
  }

  private async attempt(owner: string, taskId: string, take: () => Promise<Task | undefined>): Promise<void> {
    const { store, holder, timing, log } = this.options;
    let renewal: NodeJS.Timeout | undefined;
    try {
      const task = await take();
      if (task === undefined) return;
      renewal = setInterval(() => {
        const now = Date.now();
        store.renewLease(owner, taskId, { holder, now, until: now + timing.leaseMs }).catch(() => {});
      }, timing.leaseMs / 3);
      renewal.unref();
      await this.owed(task);
    } catch (error) {
      // The row still says what is owed; whoever looks next does it.
      if (isWorkflowError(error) && (error.code === "task_not_found" || error.code === "closed")) return;
      log.error({ task: idForLog(taskId), error: nameOf(error) }, "owed work could not be done");
    } finally {
      clearInterval(renewal);
      await store.releaseLease(owner, taskId, holder).catch(() => {});
    }
  }

  private async owed(leased: Task): Promise<void> {
    const served = this.options.served.get(leased.workflow);
    if (served === undefined) return;
    let task = leased;
    if (task.startPhase === "held")
      task = await this.mutate(task, await heldStep(served.workflow, task, this.options.store));
    if (task.startPhase === "owed" || task.startPhase === "attempted")
      task = await this.startRun(task, served);
    if (task.startPhase !== "bound") return;
    if (stopOwed(task)) task = await this.stopRun(task, served);
    if (!isTerminal(task.status)) task = await this.deliverAnswers(task, served);
    if (!isTerminal(task.status) || stopOwed(task)) {
      if (task.nextReadAt <= Date.now()) await this.readRun(task, served);
    }
  }

  // ── start ────────────────────────────────────────────────────────────────────────────────────────────────────────

  private async startRun(task: Task, served: ServedWorkflow): Promise<Task> {
    if (task.startPhase === "owed" && (isTerminal(task.status) || task.cancelRequestedAt !== null)) {
      return this.neverStart(task);
    }
    if (task.startPhase === "attempted") return this.resolveStart(task, served);
    return this.tryStart(task, served, task.startAttempts > 0);
  }

  /** Cancelled before anything was started: nothing is owed to the engine. */
  private neverStart(task: Task): Promise<Task> {
    return this.mutate(task, (fresh) => {
      const facts = { startPhase: "none", cancelConfirmedAt: Date.now(), dueAt: null } as const;
      if (isTerminal(fresh.status)) return { patch: facts, events: [{ type: "cancel.confirmed" }] };
      return ending(
        fresh,
        facts,
        "cancelled",
        { kind: "cancelled" },
        { native: "never started" },
        Date.now(),
      );
    });
  }

  private async tryStart(before: Task, { workflow, adapter }: ServedWorkflow, retry: boolean): Promise<Task> {
    const now = Date.now();
    // Promise 2: the attempt is on disk before the engine hears of it.
    let task = await this.mutate(before, (fresh) => ({
      patch: {
        startPhase: "attempted",
        startAttempts: fresh.startAttempts + 1,
        firstStartAt: fresh.firstStartAt ?? now,
        lastStartAt: now,
        dueAt: now + this.options.timing.leaseMs,
      },
      events: [{ type: "run.starting", detail: { attempt: fresh.startAttempts + 1 } }],
    }));
    try {
      const run = await this.native("start", task, () =>
        adapter.start({ key: task.startKey, input: task.input, retry }),
      );
      task = await this.bind(task, run, workflow);
    } catch (error) {
      task = await this.startFailed(task, asNative(error));
    }
    return task;
  }

  private startFailed(task: Task, error: NativeCallError): Promise<Task> {
    const { kind, message, retryAfterMs } = error.verdict;
    const now = Date.now();
    const wait = Math.max(retryAfterMs ?? 0, backoffMs(task.startAttempts - 1));
    if (kind === "rejected" || kind === "gone")
      return this.fail(task, "engine_rejected", message, { startPhase: "none" });
    if (kind === "retry") {
      if (now - (task.firstStartAt ?? now) > this.options.timing.startGiveUpMs) {
        return this.fail(task, "engine_unavailable", message, { startPhase: "none" });
      }
      return this.mutate(task, () => ({
        patch: { startPhase: "owed", dueAt: now + wait, nextReadAt: now + wait, message },
        events: [{ type: "run.start_deferred", detail: { waitMs: wait } }],
      }));
    }
    // It may have happened. The row stays `attempted`, and the next look resolves it.
    return this.mutate(task, () => ({
      patch: { dueAt: now + wait, nextReadAt: now + wait },
      events: [{ type: "run.start_ambiguous", detail: { code: error.verdict.code } }],
    }));
  }

  /** An earlier start may have reached the engine: find its run, or start again only where that starts nothing new. */
  private async resolveStart(task: Task, served: ServedWorkflow): Promise<Task> {
    const { adapter, workflow } = served;
    if (adapter.canFind) {
      try {
        const found = await this.native("find", task, () =>
          adapter.find({
            key: task.startKey,
            input: task.input,
            startedAtMs: task.firstStartAt ?? task.createdAt,
            lastStartedAtMs: task.lastStartAt ?? task.createdAt,
            isClaimed: (claim) => this.options.store.isClaimed(task.engine, claim, task),
          }),
        );
        if (found !== undefined) return this.bind(task, found, workflow);
        if (isTerminal(task.status) || task.cancelRequestedAt !== null) return this.neverStart(task);
        return this.tryStart(task, served, true);
      } catch (error) {
        const { verdict } = asNative(error);
        const now = Date.now();
        const searched = now - (task.firstStartAt ?? task.createdAt);
        if (verdict.kind !== "rejected" && searched < this.options.timing.findGiveUpMs) {
          const wait = Math.max(verdict.retryAfterMs ?? 0, backoffMs(task.startAttempts));
          return this.mutate(task, () => ({
            patch: { dueAt: now + wait, nextReadAt: now + wait },
            events: [],
          }));
        }
        if (!adapter.startsOnce) return this.outcomeUnknown(task, adapter, verdict.message);
      }
    }
    if (adapter.startsOnce) return this.tryStart(task, served, true);
    return this.outcomeUnknown(task, adapter);
  }

  private outcomeUnknown(task: Task, adapter: GuardedAdapter, why?: string): Promise<Task> {
    const where = adapter.consoleUrl === undefined ? "" : ` Look at ${adapter.consoleUrl}.`;
    const message =
      `Start outcome unknown: ${adapter.engine} may or may not have started the run, and it was not started again.` +
      `${why === undefined ? "" : ` ${why}.`}${where}`;
    return this.fail(task, "start_outcome_unknown", message, { startPhase: "none" });
  }

  private async bind(task: Task, run: StartedRun, workflow: Workflow): Promise<Task> {
    const now = Date.now();
    counters.startLatency.record(now - task.createdAt, { engine: task.engine });
    const bound = await this.mutate(task, (fresh) => ({
      patch: {
        startPhase: "bound",
        boundAt: now,
        runRef: run.ref,
        runUrl: run.url ?? fresh.runUrl,
        ...(run.claim !== undefined && { claim: run.claim }),
        nextReadAt: now,
        dueAt: now + workflow.pollMs,
      },
      events: [{ type: "run.started", detail: run.url === undefined ? {} : { url: run.url } }],
    }));
    return run.state === undefined ? bound : this.apply(bound, run.state, workflow);
  }

  // ── stop, answers, reads ─────────────────────────────────────────────────────────────────────────────────────────

  private async stopRun(task: Task, { adapter }: ServedWorkflow): Promise<Task> {
    const now = Date.now();
    const requestedAt = task.cancelRequestedAt ?? now;
    if (!adapter.canStop || now < stopDueAt(requestedAt, task.stopAttempts)) return task;
    const ref = task.runRef;
    const sent = task.stopAttempts;
    const next = stopDueAt(requestedAt, sent + 1);
    const counted = { stopAttempts: sent + 1, dueAt: next, nextReadAt: now };
    try {
      await this.native("stop", task, () =>
        adapter.stop(ref, { stopsSent: sent, requestedAgoMs: now - requestedAt }),
      );
      return await this.mutate(task, () => ({ patch: counted, events: [{ type: "run.stop_sent" }] }));
    } catch (error) {
      const { verdict } = asNative(error);
      const detail = { verdict: verdict.kind, code: verdict.code };
      return this.mutate(task, () => ({ patch: counted, events: [{ type: "run.stop_failed", detail }] }));
    }
  }

  private async deliverAnswers(leased: Task, { adapter, workflow }: ServedWorkflow): Promise<Task> {
    let task = leased;
    const stored = await this.options.store.questions(task.owner, task.taskId);
    for (const question of stored) {
      if (question.state !== "answered" || question.answer === null) continue;
      const { key, answer } = question;
      try {
        await this.native("answer", task, () => adapter.answer(task.runRef, key, answer));
        task = await this.mutate(task, () => ({
          patch: { nextReadAt: Date.now() },
          questions: { delivered: [key] },
          events: [{ type: "answer.delivered", detail: { key } }],
        }));
      } catch (error) {
        const { verdict } = asNative(error);
        const lost = verdict.kind === "gone" || verdict.kind === "rejected";
        const retryAt = Date.now() + Math.max(verdict.retryAfterMs ?? 0, workflow.pollMs);
        task = await this.mutate(task, () => ({
          patch: lost
            ? { nextReadAt: Date.now(), message: `The answer could not be delivered: ${verdict.message}` }
            : { dueAt: retryAt },
          ...(lost && { questions: { gone: [key] } }),
          events: [{ type: lost ? "answer.lost" : "answer.deferred", detail: { key, code: verdict.code } }],
        }));
      }
    }
    return task;
  }

  private async readRun(task: Task, { adapter, workflow }: ServedWorkflow): Promise<Task> {
    const ageMs = Date.now() - (task.boundAt ?? task.createdAt);
    try {
      const state = await this.native("read", task, () =>
        adapter.read(task.runRef, {
          key: task.startKey,
          ageMs,
          ...(task.attempt !== null && { attempt: task.attempt }),
          ...(task.native !== null && { native: task.native }),
          isClaimed: (claim) => this.options.store.isClaimed(task.engine, claim, task),
        }),
      );
      return await this.apply(task, state, workflow);
    } catch (error) {
      if (isWorkflowError(error) && error.code === "task_exists") {
        // Another task took the run that this read matched. Read again: it is told as claimed now.
        return this.mutate(task, () => ({ patch: { nextReadAt: Date.now() + workflow.pollMs }, events: [] }));
      }
      return this.readFailed(task, asNative(error), adapter, workflow, ageMs);
    }
  }

  private readFailed(
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
        return this.mutate(task, () => ({
          patch: { cancelConfirmedAt: now, dueAt: null },
          events: [{ type: "cancel.confirmed", detail: { native: "gone" } }],
        }));
      }
      return this.fail(task, "run_lost", `The run is gone at ${task.engine}: ${verdict.message}`);
    }
    const wait = Math.max(verdict.retryAfterMs ?? 0, workflow.pollMs, backoffMs(task.readFailures));
    return this.mutate(task, (fresh) => ({
      patch: {
        readFailures: fresh.readFailures + 1,
        failingSince: fresh.failingSince ?? now,
        nextReadAt: now + wait,
        dueAt: now + wait,
      },
      events: fresh.failingSince === null ? [{ type: "run.unreadable", detail: { code: verdict.code } }] : [],
    }));
  }

  /** Writes what the engine said, and when it is to be asked again. */
  private apply(task: Task, state: RunState, workflow: Workflow): Promise<Task> {
    return this.mutate(task, async (fresh) => {
      const now = Date.now();
      const stored = await this.options.store.questions(fresh.owner, fresh.taskId);
      const next = reconcile(fresh, stored, state, workflow, now);
      for (const warning of next.warnings) this.warnOnce(fresh, warning);
      if (state.status === "unchanged")
        this.warnOnce(fresh, `unknown native word ${JSON.stringify(state.native)}`);
      const ended = next.patch.endedAt !== undefined;
      if (ended) counters.ended.add(1, { engine: fresh.engine, status: String(next.patch.status) });
      if (ended || next.patch.cancelConfirmedAt !== undefined) return next;
      const soonest = Math.max(workflow.pollMs, state.nextReadMs ?? 0);
      // A task that nobody polls is read ever more slowly.
      const age = now - (fresh.boundAt ?? now);
      const unpolled = Math.max(soonest, Math.min(age / 4, this.options.timing.slowestReadMs));
      const stopAt =
        stopOwed(fresh) && fresh.cancelRequestedAt !== null
          ? stopDueAt(fresh.cancelRequestedAt, fresh.stopAttempts)
          : Infinity;
      return {
        ...next,
        patch: {
          ...next.patch,
          nextReadAt: now + soonest,
          dueAt: Math.round(Math.min(now + unpolled, Math.max(stopAt, now + 1))),
        },
      };
    });
  }

  // ── rows ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  private fail(
    task: Task,
    code: WorkflowErrorCode,
    message: string,
    facts: Reconciled["patch"] = {},
  ): Promise<Task> {
    counters.ended.add(1, { engine: task.engine, status: "failed" });
    return this.mutate(task, (fresh) => {
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

  private mutate(
    task: Task,
    compute: ((fresh: Task) => TaskChange | undefined | Promise<TaskChange | undefined>) | undefined,
  ): Promise<Task> {
    return compute === undefined ? Promise.resolve(task) : changeTask(this.options.store, task, compute);
  }

  private native<T>(operation: string, task: Task, call: () => Promise<T>): Promise<T> {
    const attributes = { "taskferry.task": idForLog(task.taskId), "taskferry.engine": task.engine };
    return traced(`taskferry.engine.${operation}`, attributes, async (span) => {
      if (task.runUrl !== null) span.setAttribute("taskferry.run", task.runUrl);
      let verdict = "ok";
      try {
        return await call();
      } catch (error) {
        verdict = error instanceof NativeCallError ? error.verdict.kind : "error";
        throw error;
      } finally {
        counters.nativeCalls.add(1, { operation, engine: task.engine, verdict });
      }
    });
  }

  private warnOnce(task: Task, warning: string): void {
    const key = `${task.engine}:${warning}`;
    // Bounded: a lying engine must not fill memory with new words.
    if (this.warned.has(key) || this.warned.size >= 1000) return;
    this.warned.add(key);
    this.options.log.warn({ engine: task.engine, task: idForLog(task.taskId) }, warning);
  }
}

function stopOwed(task: Task): boolean {
  return task.cancelRequestedAt !== null && task.cancelConfirmedAt === null;
}

function asNative(error: unknown): NativeCallError {
  if (error instanceof NativeCallError) return error;
  throw error;
}

function nameOf(error: unknown): string {
  return isWorkflowError(error) ? error.code : error instanceof Error ? error.name : "Error";
}

function keyOf(owner: string, taskId: string): string {
  return `${owner.length}:${owner}${taskId}`;
}
