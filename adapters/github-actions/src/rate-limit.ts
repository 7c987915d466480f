import { EngineError } from "@taskferry/core";
import { rateLimitMs } from "./errors.js";

/** Below this share of the hourly budget, reads are spread over what is left of the hour. */
const SCARCE = 0.2;
const MAX_BACKOFF_MS = 15 * 60_000;

/**
 * What GitHub's headers say about the budget of one identity.
 *
 * Going on after a limit makes GitHub extend it, so while one holds, calls fail here without being sent.
 */
export class RateLimit {
  #closedUntilMs = 0;
  #strikes = 0;
  #budget: { readonly remaining: number; readonly limit: number; readonly resetMs: number } | undefined;

  /** Throws (`retry`) while GitHub wants to be left alone. */
  check(): void {
    const retryAfterMs = this.#closedUntilMs - Date.now();
    if (retryAfterMs > 0) {
      throw new EngineError({
        kind: "retry",
        code: "RateLimited",
        message: "GitHub's rate limit is used up.",
        retryAfterMs,
      });
    }
  }

  /** Takes in the headers of an answer that was not refused. */
  observe(headers: Readonly<Record<string, string | number | undefined>>): void {
    this.#strikes = 0;
    // Search, code scanning and others have budgets of their own.
    if ((headers["x-ratelimit-resource"] ?? "core") !== "core") return;
    const remaining = Number(headers["x-ratelimit-remaining"]);
    const limit = Number(headers["x-ratelimit-limit"]);
    const resetMs = Number(headers["x-ratelimit-reset"]) * 1000;
    if (remaining >= 0 && limit > 0 && resetMs > 0) this.#budget = { remaining, limit, resetMs };
  }

  /** Takes in an error; closes the gate if it is a rate limit. */
  observeError(error: unknown): void {
    const waitMs = rateLimitMs(error);
    if (waitMs === undefined) return;
    // "If your request continues to fail, wait for an exponentially increasing amount of time."
    const backoffMs = Math.min(waitMs * 2 ** this.#strikes, Math.max(waitMs, MAX_BACKOFF_MS));
    this.#strikes += 1;
    this.#closedUntilMs = Math.max(this.#closedUntilMs, Date.now() + backoffMs);
  }

  /** How long a reader should wait before it spends `cost` more requests, in milliseconds; `undefined`: as it likes. */
  paceMs(cost: number): number | undefined {
    if (this.#budget === undefined) return undefined;
    const { remaining, limit, resetMs } = this.#budget;
    const leftMs = resetMs - Date.now();
    if (leftMs <= 0 || remaining / limit >= SCARCE) return undefined;
    return Math.min(leftMs, Math.ceil((leftMs * cost) / Math.max(remaining, 1)));
  }
}
