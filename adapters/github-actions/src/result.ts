import { EngineError, type RunLink } from "@taskferry/core";
import type { GitHubApi, Repository } from "./api.js";
import { explain, statusOf } from "./errors.js";
import { readJobs } from "./jobs.js";
import { excerpt, type LogExcerpt } from "./log-text.js";
import type {
  AnnotationResult,
  ArtifactResult,
  JobCounts,
  JobResult,
  LogResult,
  RunResult,
} from "./result-schema.js";
import type { Session } from "./session.js";
import { isFailed } from "./status.js";
import { type Artifact, type Job, type Run, toAnnotation, toArtifact } from "./wire.js";

const MAX_SHOWN_JOBS = 300;
const MAX_ANNOTATED_JOBS = 10;
const MAX_ANNOTATIONS = 50;
const MAX_ARTIFACTS = 300;
/** Logs and annotations may lag behind the end of their run: until then, a miss is not the truth. */
const LAG_MS = 15_000;
/** How long after the end of a run its outcome waits for details that GitHub cannot give at the moment. */
const PATIENCE_MS = 60_000;
/** A read has some ten seconds. Excerpts that were read in time are kept, so the next one gets further. */
const DETAILS_WITHIN_MS = 7000;

/** Reads details; one that cannot be had becomes a note, so that it does not take the rest with it. */
class Details {
  readonly notes: string[] = [];
  /** Aborts before the read's own deadline, so that what is there can still be told. */
  readonly signal: AbortSignal;
  readonly #endedAgoMs: number;
  readonly #outer: AbortSignal;

  constructor(endedAgoMs: number, outer: AbortSignal) {
    this.#endedAgoMs = endedAgoMs;
    this.#outer = outer;
    this.signal = AbortSignal.any([outer, AbortSignal.timeout(DETAILS_WITHIN_MS)]);
  }

  async read<T>(what: string, read: () => Promise<T>, otherwise: T): Promise<T> {
    try {
      return await read();
    } catch (error) {
      this.#outer.throwIfAborted();
      const verdict = explain(error);
      // The outcome is stored once and for ever: better a little later than without its log.
      if (verdict?.code === "RateLimited") throw error;
      const passing = verdict?.kind === "retry" || this.signal.aborted;
      if (passing && this.#endedAgoMs < PATIENCE_MS) throw notThereYet(error);
      if (statusOf(error) === 404 && this.#endedAgoMs < LAG_MS) throw notThereYet(error);
      this.notes.push(`${what}: ${verdict?.message ?? "could not be read."}`);
      return otherwise;
    }
  }
}

function notThereYet(cause: unknown): EngineError {
  const message = "The run has just ended; GitHub does not show all of its result yet.";
  return new EngineError({ kind: "retry", code: "ResultNotVisibleYet", message, retryAfterMs: 5000 }, cause);
}

/** A finished run, with everything about it that GitHub still has. */
export async function readResult(
  session: Session,
  repository: Repository,
  run: Run,
  isLatest: boolean,
  signal: AbortSignal,
): Promise<{ readonly result: RunResult; readonly links: readonly RunLink[] }> {
  const { api, logs: limits } = session;
  const details = new Details(api.nowMs() - run.updatedAtMs, signal);
  const all = await details.read(
    "Jobs",
    () => readJobs(api, repository, run.id, isLatest ? undefined : run.attempt, details.signal),
    { jobs: [], total: 0, pages: 0 },
  );
  const failed = all.jobs.filter((job) => isFailed(job.conclusion)).sort(byEnd);
  const [artifacts, annotations, logs] = await Promise.all([
    details.read("Artifacts", () => readArtifacts(api, repository, run, details.signal), []),
    readAnnotations(api, repository, failed, details),
    readFailedLogs(session, repository, failed.slice(0, limits.jobs), details),
  ]);
  for (const job of failed) session.excerpts.delete(job.id);
  const notLogged = failed.length - Math.min(failed.length, limits.jobs);
  if (notLogged > 0 && limits.jobs > 0)
    details.notes.push(`Logs: ${notLogged} more failed jobs are not shown.`);
  const shown = [...failed, ...all.jobs.filter((job) => !isFailed(job.conclusion))];
  if (shown.length > MAX_SHOWN_JOBS) {
    details.notes.push(`Jobs: ${shown.length - MAX_SHOWN_JOBS} more are not listed.`);
  }
  const result: RunResult = {
    runId: run.id,
    attempt: run.attempt,
    conclusion: run.conclusion ?? "unknown",
    url: run.url,
    title: run.title,
    workflow: run.workflow,
    event: run.event,
    branch: run.branch,
    sha: run.sha,
    startedAt: new Date(run.startedAtMs).toISOString(),
    durationMs: Math.max(0, run.updatedAtMs - run.startedAtMs),
    jobCounts: countJobs(all.jobs),
    jobs: shown.slice(0, MAX_SHOWN_JOBS).map(toJobResult),
    annotations,
    artifacts,
    logs,
    notes: details.notes,
  };
  return { result, links: linksOf(run, failed, artifacts) };
}

async function readArtifacts(
  api: GitHubApi,
  repository: Repository,
  run: Run,
  signal: AbortSignal,
): Promise<readonly ArtifactResult[]> {
  const route = "/repos/{owner}/{repo}/actions/runs/{run_id}/artifacts";
  const parameters = { run_id: run.id };
  const got = await api.list(
    repository,
    route,
    { name: "artifacts", max: MAX_ARTIFACTS },
    parameters,
    toArtifact,
    signal,
  );
  return got.items.map((artifact: Artifact) => ({
    name: artifact.name,
    sizeBytes: artifact.sizeBytes,
    expired: artifact.expired,
    url: `${run.url}/artifacts/${artifact.id}`,
  }));
}

async function readAnnotations(
  api: GitHubApi,
  repository: Repository,
  failed: readonly Job[],
  details: Details,
): Promise<readonly AnnotationResult[]> {
  const all: AnnotationResult[] = [];
  const route = "/repos/{owner}/{repo}/check-runs/{check_run_id}/annotations";
  for (const job of failed.slice(0, MAX_ANNOTATED_JOBS)) {
    if (all.length >= MAX_ANNOTATIONS) break;
    const parameters = { check_run_id: job.checkRunId };
    const got = await details.read(
      `Annotations of ${job.name}`,
      () => api.list(repository, route, { max: MAX_ANNOTATIONS }, parameters, toAnnotation, details.signal),
      { items: [], total: 0, pages: 0 },
    );
    all.push(...got.items.map((annotation) => ({ job: job.name, ...annotation })));
  }
  return all.slice(0, MAX_ANNOTATIONS);
}

async function readFailedLogs(
  { api, logs: limits, excerpts }: Session,
  repository: Repository,
  failed: readonly Job[],
  details: Details,
): Promise<readonly LogResult[]> {
  const route = "/repos/{owner}/{repo}/actions/jobs/{job_id}/logs";
  const read = async (job: Job): Promise<LogExcerpt> => {
    const known = excerpts.get(job.id);
    if (known !== undefined) return known;
    const log = await excerpt(api.download(repository, route, { job_id: job.id }, 0, details.signal), limits);
    excerpts.set(job.id, log);
    return log;
  };
  const logs = await Promise.all(
    failed.map(async (job): Promise<readonly LogResult[]> => {
      const log = await details.read<LogExcerpt | undefined>(
        `Log of ${job.name}`,
        () => read(job),
        undefined,
      );
      return log === undefined ? [] : [{ job: job.name, ...log }];
    }),
  );
  return logs.flat();
}

function toJobResult(job: Job): JobResult {
  const durationMs =
    job.startedAt === null || job.completedAt === null
      ? null
      : Math.max(0, Date.parse(job.completedAt) - Date.parse(job.startedAt));
  return {
    name: job.name,
    conclusion: job.conclusion,
    url: job.url,
    durationMs,
    failedSteps: job.steps.filter((step) => isFailed(step.conclusion)).map((step) => step.name),
  };
}

function countJobs(jobs: readonly Job[]): JobCounts {
  const count = (...words: readonly string[]) =>
    jobs.filter(({ conclusion }) => conclusion !== null && words.includes(conclusion)).length;
  const counted = {
    succeeded: count("success", "neutral"),
    failed: jobs.filter(({ conclusion }) => isFailed(conclusion)).length,
    cancelled: count("cancelled"),
    skipped: count("skipped"),
  };
  const known = counted.succeeded + counted.failed + counted.cancelled + counted.skipped;
  return { total: jobs.length, ...counted, other: jobs.length - known };
}

function linksOf(run: Run, failed: readonly Job[], artifacts: readonly ArtifactResult[]): readonly RunLink[] {
  const links: RunLink[] = [
    { uri: run.url, name: `Run ${run.number} of ${run.workflow}`, mimeType: "text/html" },
  ];
  for (const job of failed.slice(0, MAX_ANNOTATED_JOBS)) {
    if (job.url !== null)
      links.push({ uri: job.url, name: `Failed job: ${job.name}`, mimeType: "text/html" });
  }
  for (const { name, url, expired } of artifacts.slice(0, MAX_ANNOTATED_JOBS)) {
    if (!expired) links.push({ uri: url, name: `Artifact: ${name}`, mimeType: "application/zip" });
  }
  return links;
}

function byEnd(a: Job, b: Job): number {
  return (a.completedAt ?? "").localeCompare(b.completedAt ?? "");
}
