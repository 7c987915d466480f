import type { RunProgress } from "@taskferry/core";
import type { GitHubApi, Repository } from "./api.js";
import { isFailed } from "./status.js";
import { type Job, toJob } from "./wire.js";

/** A matrix makes 256 jobs at most; a run that calls many workflows has more. */
const MAX_JOBS = 5000;
/** Names in a message: more say nothing to a reader. */
const NAMED = 3;

/** The jobs of one attempt. */
export interface Jobs {
  readonly jobs: readonly Job[];
  readonly total: number;
  /** How many requests it took. */
  readonly pages: number;
}

/** Reads all jobs of an attempt; `attempt` absent: of the latest. */
export async function readJobs(
  api: GitHubApi,
  repository: Repository,
  runId: string,
  attempt: number | undefined,
  signal: AbortSignal,
): Promise<Jobs> {
  const list =
    attempt === undefined
      ? { route: "/repos/{owner}/{repo}/actions/runs/{run_id}/jobs", parameters: { filter: "latest" } }
      : {
          route: "/repos/{owner}/{repo}/actions/runs/{run_id}/attempts/{attempt_number}/jobs",
          parameters: { attempt_number: attempt },
        };
  const parameters = { run_id: runId, ...list.parameters };
  const got = await api.list(
    repository,
    list.route,
    { name: "jobs", max: MAX_JOBS },
    parameters,
    toJob,
    signal,
  );
  return { jobs: got.items, total: got.total, pages: got.pages };
}

/** Jobs done of those that GitHub has scheduled so far. The total grows as more are. */
export function progressOf({ jobs, total }: Jobs): RunProgress {
  return { done: jobs.filter(({ status }) => status === "completed").length, total };
}

/** One line: jobs done, failed ones, and the running steps. */
export function progressMessage(jobs: Jobs): string {
  const { done, total } = progressOf(jobs);
  const failed = jobs.jobs.filter((job) => isFailed(job.conclusion)).length;
  const running = jobs.jobs.filter(({ status }) => status === "in_progress").map(runningStep);
  const parts = [`${done} of ${total ?? done} jobs done`];
  if (failed > 0) parts.push(`${failed} failed`);
  if (running.length > 0) parts.push(`running: ${named(running)}`);
  return parts.join(", ");
}

/** The first few names, and how many more there are. */
export function named(names: readonly string[]): string {
  const more = names.length - NAMED;
  return names.slice(0, NAMED).join("; ") + (more > 0 ? `; and ${more} more` : "");
}

function runningStep(job: Job): string {
  const step = job.steps.find(({ status }) => status === "in_progress");
  return step === undefined ? job.name : `${job.name} / ${step.name}`;
}
