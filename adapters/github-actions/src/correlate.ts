import { EngineError } from "@taskferry/core";
import type { GitHubApi, Repository } from "./api.js";
import type { AcceptedDispatch } from "./ref.js";
import { type Run, toRun } from "./wire.js";

/** GitHub gives at most this many results to a filtered list of runs. */
const MAX_LISTED = 1000;

/** What is looked for. */
export interface Search {
  readonly workflow: string;
  readonly branch: string;
  readonly key: string;
  readonly correlated: boolean;
  readonly sinceMs: number;
}

/** What a search for the run of a dispatch found. */
export type Found =
  | { readonly kind: "none" }
  | { readonly kind: "run"; readonly run: Run }
  /** Several runs that may each be it. */
  | { readonly kind: "several"; readonly runs: readonly Run[] };

/** The dispatched runs of a workflow on a branch since a time, newest first. */
export async function dispatchedRuns(
  api: GitHubApi,
  repository: Repository,
  search: Pick<Search, "workflow" | "branch" | "sinceMs">,
  signal: AbortSignal,
): Promise<readonly Run[]> {
  const created = `>=${new Date(search.sinceMs).toISOString().replace(/\.\d+Z$/, "Z")}`;
  const { items } = await api.list(
    repository,
    "/repos/{owner}/{repo}/actions/workflows/{workflow_id}/runs",
    { name: "workflow_runs", max: MAX_LISTED },
    { workflow_id: search.workflow, event: "workflow_dispatch", created },
    toRun,
    signal,
  );
  // Said again here: servers exist that do not know the `created` filter, and `branch` does not match tags.
  return items.filter(
    (run) =>
      run.event === "workflow_dispatch" &&
      run.branch === search.branch &&
      run.createdAtMs >= Math.floor(search.sinceMs / 1000) * 1000,
  );
}

/**
 * The run of a dispatch whose answer told no id. With correlation it is the one whose name shows the key, and no
 * other can be taken for it. Without, it is one that no other task holds, if there is only one.
 */
export async function findRun(
  api: GitHubApi,
  repository: Repository,
  search: Search & Pick<AcceptedDispatch, "before" | "seen">,
  isClaimed: (claim: string) => Promise<boolean>,
  signal: AbortSignal,
): Promise<Found> {
  const runs = await dispatchedRuns(api, repository, search, signal);
  if (search.correlated) {
    // The oldest: should a dispatch ever have been made twice, every read tells the same run.
    const run = runs.findLast(({ title }) => title.includes(search.key));
    return run === undefined ? { kind: "none" } : { kind: "run", run };
  }
  const candidates: Run[] = [];
  for (const run of runs) {
    if (search.before?.includes(run.id) || (await isClaimed(run.id))) continue;
    candidates.push(run);
  }
  // What appeared while ours was the only dispatch of this process on its way is likelier than what came later.
  const likely = candidates.filter((run) => search.seen?.includes(run.id));
  const left = likely.length > 0 ? likely : candidates;
  const [run] = left;
  if (run === undefined) return { kind: "none" };
  return left.length === 1 ? { kind: "run", run } : { kind: "several", runs: left };
}

/** Says which runs could not be told apart. */
export function severalRuns(runs: readonly Run[]): string {
  const named = runs.slice(0, 10).map((run) => `${run.id} (${run.url})`);
  return (
    `GitHub accepted the dispatch without telling its run, and these could each be it: ${named.join(", ")}` +
    `${runs.length > named.length ? ` and ${runs.length - named.length} more` : ""}. Nothing was started again. ` +
    "To tell runs apart, give the workflow a `taskferry_id` input and show it in its `run-name`."
  );
}

/** For `find`: nothing can be said yet; ask again. */
export function notYet(message: string, retryAfterMs: number): EngineError {
  return new EngineError({ kind: "retry", code: "RunNotVisibleYet", message, retryAfterMs });
}
