/** Single-flight, paced reading of native state: by polls, and for those who wait. */

import { isTerminal, type Task } from "../contract/task.js";
import { counters } from "../observe/observe.js";
import type { TaskStore } from "../store/task-store.js";
import type { Dispatcher } from "./dispatcher.js";
import { withTimeout } from "./timeout.js";
import type { Timing } from "./timing.js";

/** Keeps rows as fresh as somebody wants them, and no fresher. */
export class Refresher {
  private readonly watched = new Map<string, { watchers: number; timer: NodeJS.Timeout | undefined }>();
  private closed = false;

  constructor(
    private readonly store: TaskStore,
    private readonly dispatcher: Dispatcher,
    private readonly timing: Timing,
  ) {}

  /**
   * Lets a poll cause the native read that is due, and waits for it a little. Many polls share one read, and an engine
   * that hangs delays only the first of them.
   * @returns the row to answer from
   */
  async poll(task: Task): Promise<Task> {
    const { owner, taskId } = task;
    const due = !isTerminal(task.status) && task.nextReadAt <= Date.now();
    const answer = !due ? "row" : this.dispatcher.isStuck(owner, taskId, 0) ? "joined" : "read";
    counters.polls.add(1, { answer });
    if (!due) return task;
    if (!this.dispatcher.isStuck(owner, taskId, this.timing.readWaitMs)) {
      await withTimeout(this.dispatcher.run(owner, taskId), this.timing.readWaitMs);
    }
    return (await this.store.get(owner, taskId)) ?? task;
  }

  /** Reads a task at its pace for as long as somebody waits for it. @returns a function that ends the watch. */
  watch(owner: string, taskId: string): () => void {
    const key = JSON.stringify([owner, taskId]);
    const entry = this.watched.get(key) ?? { watchers: 0, timer: undefined };
    entry.watchers += 1;
    if (entry.watchers === 1) {
      this.watched.set(key, entry);
      this.schedule(key, owner, taskId, 0);
    }
    let ended = false;
    return () => {
      if (ended) return;
      ended = true;
      entry.watchers -= 1;
      if (entry.watchers > 0) return;
      clearTimeout(entry.timer);
      this.watched.delete(key);
    };
  }

  close(): void {
    this.closed = true;
    for (const { timer } of this.watched.values()) clearTimeout(timer);
    this.watched.clear();
  }

  private schedule(key: string, owner: string, taskId: string, afterMs: number): void {
    const entry = this.watched.get(key);
    if (entry === undefined || this.closed) return;
    entry.timer = setTimeout(() => void this.tick(key, owner, taskId), afterMs);
    entry.timer.unref();
  }

  private async tick(key: string, owner: string, taskId: string): Promise<void> {
    let next = this.timing.tickMs;
    try {
      let task = await this.store.get(owner, taskId);
      if (task === undefined || isTerminal(task.status)) return;
      if (task.nextReadAt <= Date.now()) {
        await this.dispatcher.run(owner, taskId);
        task = await this.store.get(owner, taskId);
        if (task === undefined || isTerminal(task.status)) return;
      }
      // A moment of its own even when the read is due at once: another process may hold the lease.
      next = Math.max(20, Math.min(task.nextReadAt - Date.now(), 60_000));
    } catch {
      // The database is briefly not there: the next tick asks again.
    }
    this.schedule(key, owner, taskId, next);
  }
}
