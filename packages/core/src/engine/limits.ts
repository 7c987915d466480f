/** Rates and concurrency per owner (SEP-1686, 8.1 and 8.2). Rates are counted per process. */
import type { RateLimiterMemory, RateLimiterRes } from "rate-limiter-flexible";
import { WorkflowError } from "../contract/errors.js";
import type { Owner } from "../contract/owner.js";
import { counters, idForLog, type Logger } from "../observe/observe.js";
import type { TaskStore } from "../store/task-store.js";

/** What an owner may do. Rates are requests per minute. */
export interface Limits {
  /** @default 120 */
  readonly createPerMinute: number;
  /** `tasks/get`, status companions, subscriptions. @default 6000 */
  readonly getPerMinute: number;
  /** `tasks/result`, `tasks/update`, `tasks/cancel`, `tasks/delete`. @default 1200 */
  readonly resultPerMinute: number;
  /** @default 300 */
  readonly listPerMinute: number;
  /** Tasks that run, or whose stop is still owed to the engine. @default 100 */
  readonly concurrentTasks: number;
  /** Requests of one connection that may wait inline or block at the same time. @default 1000 */
  readonly blockedRequests: number;
}

export const DEFAULT_LIMITS: Limits = {
  createPerMinute: 120,
  getPerMinute: 6_000,
  resultPerMinute: 1_200,
  listPerMinute: 300,
  concurrentTasks: 100,
  blockedRequests: 1_000,
};

/** @throws WorkflowError `configuration` for a limit that there is not, or that is no whole number from 1 */
export function checkLimits(limits: Partial<Limits>): void {
  for (const [name, value] of Object.entries(limits)) {
    if (!(name in DEFAULT_LIMITS)) {
      const known = Object.keys(DEFAULT_LIMITS).join(", ");
      throw new WorkflowError("configuration", `There is no limit "${name}"; the limits are ${known}`);
    }
    if (Number.isInteger(value) && value >= 1) continue;
    throw new WorkflowError(
      "configuration",
      `The limit ${name} must be a whole number, at least 1; got ${value}`,
    );
  }
}

/** Failed look-ups of one owner in a minute that are worth a warning. */
const SUSPICIOUS_MISSES = 60;

/** When the rates are loaded at the latest: a host that has just started this process wants to hear of its tools first. */
const LOADED_MS = 150;
/** How long a count of running tasks serves. */
const COUNTS_MS = 1_000;

/** The operations that have a rate. */
export type LimitedOperation = "create" | "get" | "result" | "list";

/** What is counted a minute at a time. */
interface Rates extends Readonly<Record<LimitedOperation, RateLimiterMemory>> {
  readonly misses: RateLimiterMemory;
  readonly hits: RateLimiterMemory;
}

/** Counts and refuses. */
export class Limiter {
  private rates: Rates | undefined;
  private loading: Promise<Rates> | undefined;
  private readonly blocked = new Map<string, number>();
  /** How many tasks owners had when they were counted, and those made since. */
  private readonly running = new Map<string, number>();
  private runningSince = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly limits: Limits,
    private readonly store: TaskStore,
    private readonly log: Logger,
  ) {
    // Not left to the first request: what is installed may be replaced while a server idles.
    setTimeout(() => void this.load().catch(() => {}), LOADED_MS).unref();
  }

  /** @throws WorkflowError `limit_exceeded` with `retryAfterMs` */
  async take(owner: Owner, operation: LimitedOperation): Promise<void> {
    const rates = this.rates ?? (await this.load());
    try {
      await rates[operation].consume(owner.limitKey);
    } catch (refusal) {
      if (!isRefusal(refusal)) throw refusal;
      const retryAfterMs = Math.max(1, refusal.msBeforeNext);
      counters.limitHits.add(1, { limit: operation });
      if (refusal.consumedPoints === this.limits[`${operation}PerMinute`] + 1)
        this.warn(owner, `${operation}PerMinute`);
      throw new WorkflowError(
        "limit_exceeded",
        `Rate limit reached: at most ${this.limits[`${operation}PerMinute`]} ${operation} requests a minute. ` +
          `Try again in ${Math.ceil(retryAfterMs / 1000)} s.`,
        { retryable: true, retryAfterMs, data: { limit: `${operation}PerMinute`, retryAfterMs } },
      );
    }
  }

  /** Notes a look-up that found nothing; many of them may be somebody guessing ids (SEP-1686, 8.3). */
  async missed(owner: Owner): Promise<void> {
    const { misses } = this.rates ?? (await this.load());
    const { consumedPoints } = await misses
      .consume(owner.limitKey)
      .catch((refusal: RateLimiterRes) => refusal);
    if (consumedPoints !== SUSPICIOUS_MISSES) return;
    const fields = { owner: idForLog(owner.limitKey), failedLookups: consumedPoints };
    this.log.warn(fields, "many look-ups of tasks that are not there");
  }

  /**
   * Counting is a walk over an owner's running tasks, so one count serves for a moment where it is far below the limit:
   * below an eighth of it, so that it takes several processes on one database to pass it. Otherwise the store counts in
   * the transaction that writes the task: then no two calls pass together.
   * @returns how many the store must see to it that there are; `undefined`: far fewer
   */
  async admit(owner: Owner): Promise<number | undefined> {
    const most = this.limits.concurrentTasks;
    const unchecked = Math.floor(most / 8);
    const now = performance.now();
    if (now - this.runningSince >= COUNTS_MS) {
      this.runningSince = now;
      this.running.clear();
    }
    const counted = this.running.get(owner.id) ?? (await this.store.countActive(owner.id, most));
    // Others have been admitted while this one was counting.
    const before = Math.max(counted, this.running.get(owner.id) ?? 0);
    this.running.set(owner.id, before + 1);
    return before < unchecked ? undefined : most;
  }

  /** What a caller hears that has as many tasks as it may. */
  tooMany(owner: Owner): WorkflowError {
    this.hit(owner, "concurrentTasks");
    return new WorkflowError(
      "limit_exceeded",
      `Too many tasks at once: at most ${this.limits.concurrentTasks} may run (a cancelled one counts until its engine ` +
        `has stopped it). Wait for one to end, or cancel one.`,
      { retryable: true, data: { limit: "concurrentTasks" } },
    );
  }

  /** Holds a place for a request that blocks. @returns a function that gives it back. @throws `limit_exceeded` */
  block(owner: Owner): () => void {
    const held = this.blocked.get(owner.limitKey) ?? 0;
    if (held >= this.limits.blockedRequests) {
      this.hit(owner, "blockedRequests");
      throw new WorkflowError(
        "limit_exceeded",
        `Too many waiting requests: at most ${this.limits.blockedRequests}.`,
        {
          retryable: true,
          data: { limit: "blockedRequests" },
        },
      );
    }
    this.blocked.set(owner.limitKey, held + 1);
    let given = false;
    return () => {
      if (given) return;
      given = true;
      const left = (this.blocked.get(owner.limitKey) ?? 1) - 1;
      if (left === 0) this.blocked.delete(owner.limitKey);
      else this.blocked.set(owner.limitKey, left);
    };
  }

  private load(): Promise<Rates> {
    this.loading ??= loadRates(this.limits).then(
      (rates) => {
        this.rates = rates;
        return rates;
      },
      (error: unknown) => {
        this.loading = undefined;
        throw error;
      },
    );
    return this.loading;
  }

  private hit(owner: Owner, limit: "concurrentTasks" | "blockedRequests"): void {
    counters.limitHits.add(1, { limit });
    const first = this.load().then(({ hits }) => hits.consume(`${limit}:${owner.limitKey}`));
    void first.then(
      () => this.warn(owner, limit),
      () => {},
    );
  }

  /** Once a minute, owner and limit: who floods a server must not flood its log. */
  private warn(owner: Owner, limit: string): void {
    this.log.warn({ limit, owner: idForLog(owner.limitKey) }, "limit.hit");
  }
}

async function loadRates(limits: Limits): Promise<Rates> {
  const { RateLimiterMemory } = await import("rate-limiter-flexible");
  const perMinute = (points: number) => new RateLimiterMemory({ points, duration: 60 });
  return {
    create: perMinute(limits.createPerMinute),
    get: perMinute(limits.getPerMinute),
    result: perMinute(limits.resultPerMinute),
    list: perMinute(limits.listPerMinute),
    misses: perMinute(SUSPICIOUS_MISSES),
    hits: perMinute(1),
  };
}

function isRefusal(error: unknown): error is RateLimiterRes {
  return typeof (error as Partial<RateLimiterRes> | undefined)?.msBeforeNext === "number";
}
