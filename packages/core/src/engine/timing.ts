/** Every duration of the engine, in milliseconds, with its default. */
export interface Timing {
  /** How long a create waits for the start before it is answered from the row. @default 2000 */
  readonly startWaitMs: number;
  /** How long a poll waits for a native read before it is answered from the row. @default 1000 */
  readonly readWaitMs: number;
  /** Deadline of one native start (adapters may say otherwise), `find` included. @default 60000 */
  readonly startDeadlineMs: number;
  /** Deadline of one native read. @default 10000 */
  readonly readDeadlineMs: number;
  /** Deadline of one stop or answer. @default 15000 */
  readonly stopDeadlineMs: number;
  /** How long a lease on a task's work holds without renewal; a dead process's work is taken over after it. @default 15000 */
  readonly leaseMs: number;
  /** How often the server looks for work that is owed. @default 1000 */
  readonly tickMs: number;
  /** The slowest that a task nobody polls is read. @default 300000 */
  readonly slowestReadMs: number;
  /** How long a start that surely has not happened (throttled) is tried again before the task fails. @default 3600000 */
  readonly startGiveUpMs: number;
  /** How long the run of an interrupted start is searched before its outcome is called unknown. @default 600000 */
  readonly findGiveUpMs: number;
  /** How often expired tasks are removed. @default 30000 */
  readonly sweepMs: number;
  /** How long "Task has expired" is remembered. @default 86400000 */
  readonly tombstoneMs: number;
  /** How long audit events are kept. @default 2592000000 (30 days) */
  readonly auditMs: number;
  /** How long closing waits for native calls in flight. @default 5000 */
  readonly drainMs: number;
}

export const DEFAULT_TIMING: Timing = {
  startWaitMs: 2_000,
  readWaitMs: 1_000,
  startDeadlineMs: 60_000,
  readDeadlineMs: 10_000,
  stopDeadlineMs: 15_000,
  leaseMs: 15_000,
  tickMs: 1_000,
  slowestReadMs: 300_000,
  startGiveUpMs: 3_600_000,
  findGiveUpMs: 600_000,
  sweepMs: 30_000,
  tombstoneMs: 86_400_000,
  auditMs: 2_592_000_000,
  drainMs: 5_000,
};

/** Exponential with jitter: 0.5 s, 1 s, 2 s … one minute. */
export function backoffMs(failures: number): number {
  const base = Math.min(60_000, 500 * 2 ** Math.min(failures, 10));
  return Math.round(base * (0.75 + Math.random() / 2));
}

/**
 * When the next stop of an owed cancel is due: at once, then 1, 3, 7, 15 … seconds after the request, then every five
 * minutes. Computed from the request, so that every process comes to the same answer.
 */
export function stopDueAt(requestedAt: number, stopsSent: number): number {
  const doubling = Math.min(stopsSent, 8);
  return requestedAt + (2 ** doubling - 1) * 1_000 + (stopsSent - doubling) * 300_000;
}
