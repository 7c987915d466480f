/** Notices who polls far more often than they were told to (SEP-1686, 8.3). Counted per process, like the rates. */

import type { Owner } from "../contract/owner.js";
import { counters, idForLog, type Logger } from "./observe.js";

const WINDOW_MS = 60_000;
/** One owner may have several clients that look at one task. */
const TIMES_AS_OFTEN = 10;
/** Below this many a minute nobody is hurt, however slow the workflow's pace is. */
const ALWAYS_FINE = 300;

/** Counts polls by owner and task, a minute at a time. */
export class PollMonitor {
  private since = 0;
  private readonly polls = new Map<string, number>();
  private readonly warned = new Set<string>();

  constructor(private readonly log: Logger) {}

  /** @param pollMs how often the client was told to poll */
  note({ limitKey }: Owner, taskId: string, pollMs: number): void {
    const now = Date.now();
    if (now - this.since >= WINDOW_MS) {
      this.since = now;
      this.polls.clear();
      this.warned.clear();
    }
    const key = `${limitKey.length}:${limitKey}${taskId}`;
    const polls = (this.polls.get(key) ?? 0) + 1;
    this.polls.set(key, polls);
    if (polls <= Math.max(ALWAYS_FINE, (TIMES_AS_OFTEN * WINDOW_MS) / pollMs)) return;
    counters.excessivePolls.add(1, {});
    // Once a minute and owner: who floods a server must not flood its log.
    if (this.warned.has(limitKey)) return;
    this.warned.add(limitKey);
    this.log.warn({ owner: idForLog(limitKey), task: idForLog(taskId), polls, pollMs }, "polling.excessive");
  }
}
