import { setTimeout as delay } from "node:timers/promises";
import type { GitHubApi, Repository } from "./api.js";
import { dispatchedRuns } from "./correlate.js";
import type { Dispatched } from "./dispatch.js";
import type { AcceptedDispatch } from "./ref.js";

/** What is known about the run of a dispatch that had no id and no correlation input. */
export type Traces = Pick<AcceptedDispatch, "before" | "seen" | "contested">;

interface Lane {
  readonly workflow: string;
  readonly branch: string;
}

/**
 * Dispatches that nothing but their time tells apart: no run id in the answer, no correlation input in the workflow.
 *
 * Those of this process go one at a time per workflow and branch: the next one leaves when the run of the last one has
 * appeared, or after a while. Runs that were there before, and runs that appeared in between, are then told apart. What
 * other processes and people dispatch in the same seconds remains to claims and, where those do not help, to honesty.
 */
export class IdLessDispatches {
  readonly #api: GitHubApi;
  readonly #waitMs: number;
  readonly #openForMs: number;
  readonly #tails = new Map<string, Promise<unknown>>();
  /** Lane → key → until when a dispatch without a run may still get one. */
  readonly #open = new Map<string, Map<string, number>>();
  readonly #contested = new Set<string>();

  constructor(api: GitHubApi, options: { readonly waitMs: number; readonly openForMs: number }) {
    this.#api = api;
    this.#waitMs = options.waitMs;
    this.#openForMs = options.openForMs;
  }

  /** Sends one dispatch when its turn comes. `tellsIds`: whether the server is still thought to answer run ids. */
  dispatch(
    repository: Repository,
    lane: Lane,
    key: string,
    tellsIds: () => boolean,
    send: () => Promise<Dispatched>,
    signal: AbortSignal,
  ): Promise<Dispatched & Traces> {
    const name = laneName(repository, lane);
    const turn = (this.#tails.get(name) ?? Promise.resolve()).then(() =>
      this.#inTurn(repository, lane, key, tellsIds, send, signal),
    );
    const tail = turn.catch(() => {});
    this.#tails.set(name, tail);
    void tail.then(() => {
      if (this.#tails.get(name) === tail) this.#tails.delete(name);
    });
    return turn;
  }

  /** Whether another dispatch of this process may have made the run that looks like this one's. */
  isContested(ref: AcceptedDispatch): boolean {
    return ref.contested === true || this.#contested.has(ref.key);
  }

  /** The run of this dispatch is known, or will not be. */
  settle(repository: Repository, ref: AcceptedDispatch): void {
    this.#contested.delete(ref.key);
    this.#open.get(laneName(repository, ref))?.delete(ref.key);
  }

  async #inTurn(
    repository: Repository,
    lane: Lane,
    key: string,
    tellsIds: () => boolean,
    send: () => Promise<Dispatched>,
    signal: AbortSignal,
  ): Promise<Dispatched & Traces> {
    signal.throwIfAborted();
    const sinceMs = this.#api.nowMs() - this.#openForMs;
    const before = tellsIds() ? [] : await this.#ids(repository, { ...lane, sinceMs }, signal);
    const dispatched = await send();
    if (dispatched.runId !== undefined) return dispatched;
    const others = this.#openIn(laneName(repository, lane));
    const contested = others.size > 0;
    for (const other of others.keys()) this.#contested.add(other);
    const seen = await this.#awaitRun(repository, { ...lane, sinceMs: dispatched.sinceMs }, before, signal);
    if (seen.length === 0 || contested) others.set(key, Date.now() + this.#openForMs);
    return { ...dispatched, before, seen, ...(contested ? { contested } : {}) };
  }

  /** Runs that appear after a dispatch. It was accepted, so nothing that goes wrong here may lose it. */
  async #awaitRun(
    repository: Repository,
    search: Lane & { readonly sinceMs: number },
    before: readonly string[],
    signal: AbortSignal,
  ): Promise<readonly string[]> {
    const until = Date.now() + this.#waitMs;
    for (;;) {
      try {
        const fresh = (await this.#ids(repository, search, signal)).filter((id) => !before.includes(id));
        if (fresh.length > 0 || Date.now() >= until) return fresh;
        await delay(Math.max(10, this.#waitMs / 10), undefined, { signal });
      } catch {
        return [];
      }
    }
  }

  async #ids(
    repository: Repository,
    search: Lane & { readonly sinceMs: number },
    signal: AbortSignal,
  ): Promise<readonly string[]> {
    return (await dispatchedRuns(this.#api, repository, search, signal)).map(({ id }) => id);
  }

  #openIn(name: string): Map<string, number> {
    const open = this.#open.get(name) ?? new Map<string, number>();
    for (const [key, until] of open) {
      if (until > Date.now()) continue;
      open.delete(key);
      this.#contested.delete(key);
    }
    this.#open.set(name, open);
    return open;
  }
}

function laneName(repository: Repository, { workflow, branch }: Lane): string {
  return `${repository.owner}/${repository.repo}/${workflow}@${branch}`.toLowerCase();
}
