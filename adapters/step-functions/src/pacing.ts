/** How often the runs of one account and region are read. */
export interface PacerOptions {
  /** Reads per second that this process allows itself. */
  readonly readsPerSecond: number;
}

/** Runs that were not read for this long count no more: their tasks are deleted, or another process has them. */
const FORGET_MS = 600_000;

/**
 * Spreads the reads of many runs, because DescribeExecution refills with 15 a second in the largest regions. The
 * interval grows with the runs in flight; it doubles when AWS throttles and comes back while it does not.
 */
export class Pacer {
  readonly #seen = new Map<string, number>();
  #slowdown = 1;

  constructor(private readonly readsPerSecond: number) {}

  /** One more read went through. @returns when to read this run again, in milliseconds */
  running(executionArn: string, now = Date.now()): number {
    this.#slowdown = Math.max(1, this.#slowdown * 0.98);
    // Oldest first, since each read moves its run to the end.
    this.#seen.delete(executionArn);
    this.#seen.set(executionArn, now);
    for (const [arn, at] of this.#seen) {
      if (now - at < FORGET_MS) break;
      this.#seen.delete(arn);
    }
    return this.intervalMs;
  }

  ended(executionArn: string): void {
    this.#seen.delete(executionArn);
  }

  throttled(): void {
    this.#slowdown = Math.min(32, this.#slowdown * 2);
  }

  get intervalMs(): number {
    return Math.round((Math.max(1, this.#seen.size) / this.readsPerSecond) * this.#slowdown * 1000);
  }
}

const pacers = new Map<string, Pacer>();

/** The quota belongs to account and region, so all adapters of this process on them share one pacer. */
export function pacerOf(home: string, readsPerSecond: number): Pacer {
  const key = `${home} ${readsPerSecond}`;
  const pacer = pacers.get(key) ?? new Pacer(readsPerSecond);
  pacers.set(key, pacer);
  return pacer;
}
