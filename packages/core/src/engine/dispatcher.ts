/**
 * The work that a task is owed: start, stop, answers, reads. Every piece is taken under the row's lease and written to
 * the row before and after the engine is called, so a fresh process does what a dead one left, and nothing twice.
 */

import { isWorkflowError } from "../contract/errors.js";
import type { Task } from "../contract/task.js";
import { idForLog, traced } from "../observe/observe.js";
import { stepBefore } from "./before.js";
import { nothingOwed, type ServedWorkflow, type WorkContext } from "./pending.js";
import { reconcileRun } from "./reconcile-loop.js";
import { firstStart, startRun } from "./start.js";
import { withTimeout } from "./timeout.js";
import { updateTask } from "./update.js";

export interface WorkOptions extends Omit<WorkContext, "warned"> {
  readonly served: ReadonlyMap<string, ServedWorkflow>;
}

/** What brings a piece of work about: the task's first start, somebody who asks, or its own time that has come. */
type Reason = "first" | "asked" | "due";

/** One piece of work under way. */
interface Flight {
  readonly since: number;
  /** The row as the flight left it; `undefined` if another process works on it. */
  readonly done: Promise<Task | undefined>;
  /** Something new is owed that this flight may have passed already. */
  again: boolean;
}

/** Does owed work, one task at a time per process (single flight) and per database (lease). */
export class Dispatcher {
  private readonly flights = new Map<string, Flight>();
  private readonly context: WorkContext;
  private closed = false;

  constructor(private readonly options: WorkOptions) {
    const { store, timing, log, holder } = options;
    this.context = { store, timing, log, holder, warned: new Set() };
  }

  /** Whether a flight on this task has been going on for at least this long, in milliseconds. */
  isStuck(owner: string, taskId: string, forMs: number): boolean {
    const flight = this.flights.get(keyOf(owner, taskId));
    return flight !== undefined && Date.now() - flight.since >= forMs;
  }

  /** Does what is owed now, joining a flight that is under way. Never throws. */
  run(owner: string, taskId: string): Promise<Task | undefined> {
    return this.fly(owner, taskId, () => this.takeLease(owner, taskId), "asked");
  }

  /** The same for something that has just come to be owed: a flight that is under way is followed by another. */
  async nudge(owner: string, taskId: string): Promise<Task | undefined> {
    const current = this.flights.get(keyOf(owner, taskId));
    if (current === undefined) return this.run(owner, taskId);
    current.again = true;
    return current.done;
  }

  /** The same for a task whose lease this process already holds. */
  runLeased(task: Task): Promise<Task | undefined> {
    return this.fly(task.owner, task.taskId, async () => task, "due");
  }

  /** Starts the run of a task that has just been written, with its first attempt and this process's lease. */
  begin(task: Task): Promise<Task | undefined> {
    return this.fly(task.owner, task.taskId, async () => task, "first");
  }

  /** Refuses new flights, and waits for those under way at most this long each time: once before, once after `abort`. */
  async drain(limitMs: number, abort: () => void): Promise<void> {
    this.closed = true;
    const landed = () => Promise.allSettled([...this.flights.values()].map((flight) => flight.done));
    await withTimeout(landed(), limitMs);
    abort();
    // What has been aborted gives its lease back itself; what ignores even that is left to run out.
    await withTimeout(landed(), 1_000);
  }

  private fly(
    owner: string,
    taskId: string,
    take: () => Promise<Task | undefined>,
    reason: Reason,
  ): Promise<Task | undefined> {
    const key = keyOf(owner, taskId);
    const current = this.flights.get(key);
    if (current !== undefined) return current.done;
    if (this.closed) return Promise.resolve(undefined);
    const flight: { since: number; done: Promise<Task | undefined>; again: boolean } = {
      since: Date.now(),
      done: Promise.resolve(undefined),
      again: false,
    };
    flight.done = this.attempt(owner, taskId, take, reason).finally(() => {
      this.flights.delete(key);
      if (flight.again) void this.run(owner, taskId);
    });
    this.flights.set(key, flight);
    return flight.done;
  }

  private takeLease(owner: string, taskId: string): Promise<Task | undefined> {
    const now = Date.now();
    const { store, holder, timing } = this.options;
    return store.lease(owner, taskId, { holder, now, until: now + timing.leaseMs });
  }

  private async attempt(
    owner: string,
    taskId: string,
    take: () => Promise<Task | undefined>,
    reason: Reason,
  ): Promise<Task | undefined> {
    const { store, holder, timing, log } = this.options;
    let renewal: NodeJS.Timeout | undefined;
    let task: Task | undefined;
    try {
      task = await take();
      if (task === undefined) return undefined;
      renewal = setInterval(() => {
        const now = Date.now();
        store.renewLease(owner, taskId, { holder, now, until: now + timing.leaseMs }).catch(() => {});
      }, timing.leaseMs / 3);
      renewal.unref();
      const { workflow, engine } = task;
      const attributes = () => ({
        "taskferry.task": idForLog(taskId),
        "taskferry.workflow": workflow,
        "taskferry.engine": engine,
        "taskferry.reason": reason,
      });
      const leased = task;
      task = await traced("taskferry.work", attributes, () => this.owed(leased, reason));
      return task;
    } catch (error) {
      // The row still says what is owed; whoever looks next does it.
      const isGone = isWorkflowError(error) && (error.code === "task_not_found" || error.code === "closed");
      if (!isGone) log.error({ task: idForLog(taskId), error: nameOf(error) }, "owed work could not be done");
      return undefined;
    } finally {
      clearInterval(renewal);
      if (task?.leaseHolder === holder) await store.releaseLease(owner, taskId, holder).catch(() => {});
    }
  }

  private async owed(leased: Task, reason: Reason): Promise<Task> {
    const served = this.options.served.get(leased.workflow);
    if (served === undefined) return leased;
    const { context } = this;
    if (reason === "first") return firstStart(context, leased, served);
    let task = leased;
    if (task.startPhase === "held") {
      const step = await stepBefore(served.workflow, task, context.store);
      if (step !== undefined) task = await updateTask(context, task, step);
    }
    if (task.startPhase === "owed" || task.startPhase === "attempted") {
      task = await startRun(context, task, served);
    }
    if (task.startPhase === "bound") task = await reconcileRun(context, task, served, reason === "due");
    if (!nothingOwed(task) || task.dueAt === null) return task;
    return updateTask(context, task, (fresh) =>
      nothingOwed(fresh) ? { patch: { dueAt: null }, events: [] } : undefined,
    );
  }
}

function nameOf(error: unknown): string {
  return isWorkflowError(error) ? error.code : error instanceof Error ? error.name : "Error";
}

function keyOf(owner: string, taskId: string): string {
  return `${owner.length}:${owner}${taskId}`;
}
