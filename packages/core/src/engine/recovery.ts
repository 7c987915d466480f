/** What a restart owes, and what nobody asks for: due work of every task, taken under leases, and the sweeping of expired ones. */
import type { TaskGauges } from "../observe/gauges.js";
import type { Logger } from "../observe/observe.js";
import type { TaskStore } from "../store/task-store.js";
import type { Dispatcher } from "./dispatcher.js";
import type { Timing } from "./timing.js";

/** How many tasks one process works on at the same time without being asked. */
const CONCURRENCY = 64;
/** A host that has just started this process wants to hear of its tools first. Milliseconds. */
const FIRST_LOOK_MS = 100;

export interface RecoveryOptions {
  readonly store: TaskStore;
  readonly dispatcher: Dispatcher;
  readonly workflows: readonly string[];
  readonly holder: string;
  readonly timing: Timing;
  readonly log: Logger;
  readonly gauges: TaskGauges;
}

/** Looks for owed work from its start on: a crash and a quiet hour are the same to it. */
export class Recovery {
  private readonly running = new Set<Promise<unknown>>();
  private timer: NodeJS.Timeout | undefined;
  private sweptAt = 0;
  private closed = false;
  private failing = false;

  constructor(private readonly options: RecoveryOptions) {}

  start(): void {
    this.timer = setTimeout(() => void this.tick(), FIRST_LOOK_MS);
    this.timer.unref();
  }

  stop(): void {
    this.closed = true;
    clearTimeout(this.timer);
  }

  private async tick(): Promise<void> {
    const { timing, log } = this.options;
    try {
      await this.takeDue();
      await this.sweep();
      await this.options.gauges.tick();
      this.failing = false;
    } catch (error) {
      // Once per outage: the store says on every operation what is wrong with it.
      if (!this.failing && !this.closed)
        log.error({ error: (error as Error).message }, "owed work cannot be looked for");
      this.failing = true;
    }
    if (this.closed) return;
    this.timer = setTimeout(() => void this.tick(), timing.tickMs * (0.8 + Math.random() * 0.4));
    this.timer.unref();
  }

  private async takeDue(): Promise<void> {
    const { store, dispatcher, workflows, holder, timing } = this.options;
    while (!this.closed && this.running.size < CONCURRENCY) {
      const now = Date.now();
      const limit = CONCURRENCY - this.running.size;
      const tasks = await store.leaseDue({ holder, now, until: now + timing.leaseMs, workflows, limit });
      for (const task of tasks) {
        const done: Promise<unknown> = dispatcher.runLeased(task).finally(() => this.running.delete(done));
        this.running.add(done);
      }
      if (tasks.length < limit) return;
      await Promise.race(this.running);
    }
  }

  private async sweep(): Promise<void> {
    const { store, timing } = this.options;
    const now = Date.now();
    if (now - this.sweptAt < timing.sweepMs) return;
    this.sweptAt = now;
    const limit = 500;
    let removed = limit;
    while (removed === limit && !this.closed) {
      const swept = await store.sweep({
        now,
        limit,
        tombstonesBefore: now - timing.tombstoneMs,
        eventsBefore: now - timing.auditMs,
      });
      removed = swept.tasks;
    }
  }
}
