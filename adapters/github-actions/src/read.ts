import { EngineError, type ReadRequest, type RunState } from "@taskferry/core";
import type { Repository } from "./api.js";
import { type Jobs, named, progressMessage, progressOf, readJobs } from "./jobs.js";
import { type Waiting, waitingApproval, waitingDeployments } from "./questions.js";
import type { KnownRun } from "./ref.js";
import { readResult } from "./result.js";
import type { RunResult } from "./result-schema.js";
import { failureMessage, resultText } from "./result-text.js";
import type { Session } from "./session.js";
import { meaningOf, nativeWord } from "./status.js";
import type { Run } from "./wire.js";

type Request = Pick<ReadRequest, "signal" | "ageMs">;

/** A re-run shows as soon as GitHub took it; a replica may lag. */
const ATTEMPT_APPEARS_WITHIN_MS = 120_000;
/** Runs with more pages of jobs than this are read more seldom. */
const FEW_PAGES = 3;
const PER_PAGE_MS = 5000;

/** The state of the attempt that a task is about. */
export async function readRun(session: Session, ref: KnownRun, request: Request): Promise<RunState> {
  const latest = await session.runs.read(ref, ref.runId, request.signal);
  // A dispatch makes attempt 1; whatever was made of the run afterwards is not this task's.
  const attempt = ref.attempt ?? 1;
  if (latest.attempt < attempt) return awaitAttempt(latest, attempt, request.ageMs);
  const isLatest = latest.attempt === attempt;
  const run = isLatest ? latest : await session.runs.readAttempt(ref, ref.runId, attempt, request.signal);
  return stateOf(session, ref, isLatest ? run : { ...run, attempt }, isLatest, request.signal);
}

function awaitAttempt(latest: Run, attempt: number, ageMs: number): RunState {
  if (ageMs > ATTEMPT_APPEARS_WITHIN_MS) {
    const message = `Attempt ${attempt} of the run does not exist.`;
    throw new EngineError({ kind: "gone", code: "AttemptNotFound", message });
  }
  return {
    native: "requested",
    status: "submitted",
    message: `Attempt ${attempt} has not appeared yet`,
    attempt,
    url: latest.url,
  };
}

/** The state of one attempt, with as many further requests as its status needs. */
export async function stateOf(
  session: Session,
  repository: Repository,
  run: Run,
  isLatest: boolean,
  signal: AbortSignal,
): Promise<RunState> {
  const meaning = meaningOf(run.status, run.conclusion);
  const base = {
    native: nativeWord(run.status, run.conclusion),
    attempt: run.attempt,
    url:
      isLatest && run.attempt === 1
        ? run.url
        : `${run.url.replace(/\/attempts\/\d+$/, "")}/attempts/${run.attempt}`,
  };
  switch (meaning.status) {
    case "submitted":
      return { ...base, status: "submitted", message: queuedMessage(run), ...paced(session, repository, 1) };
    case "working":
      return { ...base, ...(await workingState(session, repository, run, signal)) };
    case "input_required":
      return run.conclusion === "action_required"
        ? { ...base, ...waitingState(await waitingApproval(session.api, repository, run, signal)) }
        : { ...base, ...(await heldState(session, repository, run, signal)) };
    case "completed": {
      const { result, links } = await readResult(session, repository, run, isLatest, signal);
      return { ...base, ...completedState(result, links, meaning.outcome) };
    }
    case "cancelled":
      return { ...base, status: "cancelled", message: "The run was cancelled" };
    case "unknown":
      return {
        ...base,
        status: "unknown",
        failure: { code: run.conclusion ?? "unknown", message: "GitHub has lost track of this run." },
      };
    default:
      return { ...base, status: "unchanged", ...paced(session, repository, 1) };
  }
}

function queuedMessage(run: Run): string {
  return run.status === "pending" ? "Waits for other runs of its concurrency group" : "Queued";
}

function completedState(
  result: RunResult,
  links: Awaited<ReturnType<typeof readResult>>["links"],
  outcome: "output" | "failure" | undefined,
): Pick<RunState, "status" | "message" | "output" | "failure"> {
  const value = JSON.parse(JSON.stringify(result));
  const text = resultText(result);
  if (outcome === "output") {
    const message = result.conclusion === "skipped" ? "Every job was skipped" : "The run succeeded";
    return { status: "completed", message, output: { value, text, links } };
  }
  const message = failureMessage(result);
  return { status: "completed", message, failure: { code: result.conclusion, message, value, text, links } };
}

async function workingState(
  session: Session,
  repository: Repository,
  run: Run,
  signal: AbortSignal,
): Promise<Omit<RunState, "native">> {
  if (!session.progress) return { status: "working", ...paced(session, repository, 1) };
  const jobs = await readJobs(session.api, repository, run.id, undefined, signal);
  // One job may wait for a review while others run: then the run as a whole is still "in_progress".
  if (jobs.jobs.some(({ status }) => status === "waiting")) {
    const waiting = await waitingDeployments(session.api, repository, run, signal);
    if (waiting !== undefined)
      return { ...waitingState(waiting, jobs), ...paced(session, repository, 3, jobs.pages) };
  }
  return {
    status: "working",
    message: progressMessage(jobs),
    progress: progressOf(jobs),
    ...paced(session, repository, 2, jobs.pages),
  };
}

/** A run whose status is `waiting`. */
async function heldState(
  session: Session,
  repository: Repository,
  run: Run,
  signal: AbortSignal,
): Promise<Omit<RunState, "native">> {
  const waiting = await waitingDeployments(session.api, repository, run, signal);
  const state = waiting === undefined ? heldBack() : waitingState(waiting);
  return { ...state, ...paced(session, repository, 3) };
}

function heldBack(): Omit<RunState, "native"> {
  return { status: "working", message: "Waits for a deployment protection rule" };
}

function waitingState({ questions, message }: Waiting, jobs?: Jobs): Omit<RunState, "native"> {
  const progress = jobs === undefined ? {} : { progress: progressOf(jobs) };
  const parts = jobs === undefined ? [message] : [message, progressMessage(jobs)];
  return questions.length > 0
    ? { status: "input_required", message: named(parts), questions, ...progress }
    : { status: "working", message: named(parts), ...progress };
}

/** When to read again, if not as soon as core likes. */
function paced(
  session: Session,
  repository: Repository,
  requests: number,
  pages = 1,
): Pick<RunState, "nextReadMs"> {
  const forBudget = session.api.rateLimit(repository).paceMs(requests + pages - 1) ?? 0;
  const forPages = pages > FEW_PAGES ? pages * PER_PAGE_MS : 0;
  const nextReadMs = Math.max(forBudget, forPages);
  return nextReadMs > 0 ? { nextReadMs } : {};
}
