import type { GitHubApi, Repository } from "./api.js";
import { items, type Run, toRun } from "./wire.js";

interface Waiting {
  readonly runId: string;
  readonly signal: AbortSignal;
  readonly resolve: (run: Run | PromiseLike<Run>) => void;
}

/**
 * Reads single runs. Reads of one repository that come at the same moment are answered from one list of its newest
 * runs, where that is cheaper; runs that the list does not show are read one by one.
 */
export class RunReader {
  readonly #api: GitHubApi;
  readonly #batchFrom: number;
  readonly #windowMs: number;
  readonly #waiting = new Map<string, Waiting[]>();

  constructor(api: GitHubApi, options: { readonly batchFrom?: number; readonly batchWindowMs?: number }) {
    this.#api = api;
    this.#batchFrom = options.batchFrom ?? 4;
    this.#windowMs = options.batchWindowMs ?? 20;
  }

  /** The run as it is now: its latest attempt. */
  read(repository: Repository, runId: string, signal: AbortSignal): Promise<Run> {
    if (this.#batchFrom === Number.POSITIVE_INFINITY) return this.#readOne(repository, runId, signal);
    return new Promise<Run>((resolve) => {
      const name = `${repository.owner}/${repository.repo}`.toLowerCase();
      const waiting = this.#waiting.get(name);
      if (waiting !== undefined) {
        waiting.push({ runId, signal, resolve });
        return;
      }
      const batch: Waiting[] = [{ runId, signal, resolve }];
      this.#waiting.set(name, batch);
      setTimeout(() => {
        this.#waiting.delete(name);
        void this.#answer(repository, batch);
      }, this.#windowMs);
    });
  }

  /** One attempt of a run, also when a later one exists. */
  readAttempt(repository: Repository, runId: string, attempt: number, signal: AbortSignal): Promise<Run> {
    return this.#api.get(
      repository,
      "/repos/{owner}/{repo}/actions/runs/{run_id}/attempts/{attempt_number}",
      { run_id: runId, attempt_number: attempt },
      toRun,
      signal,
    );
  }

  #readOne(repository: Repository, runId: string, signal: AbortSignal): Promise<Run> {
    const route = "/repos/{owner}/{repo}/actions/runs/{run_id}";
    return this.#api.get(repository, route, { run_id: runId }, toRun, signal);
  }

  async #answer(repository: Repository, batch: readonly Waiting[]): Promise<void> {
    const distinct = new Set(batch.map(({ runId }) => runId));
    const listed = distinct.size >= this.#batchFrom ? await this.#list(repository, batch) : undefined;
    const single = new Map<string, Promise<Run>>();
    for (const { runId, signal, resolve } of batch) {
      const run = listed?.get(runId);
      if (run !== undefined) {
        resolve(run);
        continue;
      }
      // Two tasks may watch one run, but they have deadlines of their own: only the first's call is shared.
      const first = single.get(runId);
      const reading = first?.catch(() => this.#readOne(repository, runId, signal));
      const own = reading ?? this.#readOne(repository, runId, signal);
      if (first === undefined) single.set(runId, own);
      resolve(own);
    }
  }

  /** The newest runs by id; `undefined` when the list fails: then each read finds out for itself. */
  async #list(
    repository: Repository,
    batch: readonly Waiting[],
  ): Promise<ReadonlyMap<string, Run> | undefined> {
    const pick = (data: unknown) => items(data, "workflow_runs").map(toRun);
    const signal = AbortSignal.any(batch.map((waiting) => waiting.signal));
    const parameters = { per_page: 100 };
    try {
      const runs = await this.#api.get(
        repository,
        "/repos/{owner}/{repo}/actions/runs",
        parameters,
        pick,
        signal,
      );
      return new Map(runs.map((run) => [run.id, run]));
    } catch {
      return undefined;
    }
  }
}
