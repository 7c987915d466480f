import {
  checkOptions,
  type FindRequest,
  type JsonObject,
  type StartedRun,
  type StartRequest,
  type WorkflowAdapter,
} from "@taskferry/core";
import type { Repository } from "./api.js";
import { notYet } from "./correlate.js";
import { refused } from "./errors.js";
import { COMMON_OPTIONS, type RerunOptions } from "./options.js";
import { readRun } from "./read.js";
import { knownRun, toRunRef } from "./ref.js";
import { namedRun, RUN_ARGUMENTS } from "./run-argument.js";
import { runParts } from "./run-parts.js";
import { openSession } from "./session.js";
import { stopRun } from "./stop.js";
import { argumentsOf, repositoryOf, targetProperties } from "./target.js";
import { runOf } from "./watch-run.js";
import type { Run } from "./wire.js";
import { apiOf } from "./workflow-file.js";

/** A re-run that GitHub took shows on the run at once; a replica may lag. */
const APPEARS_WITHIN_MS = 30_000;
const LOOK_AGAIN_MS = 2000;
const SKEW_MS = 5000;

const OPTIONS = {
  workflow: true,
  jobs: true,
  appearsWithinMs: true,
  ...COMMON_OPTIONS,
} as const satisfies Readonly<Record<keyof RerunOptions, true>>;

/**
 * Runs a finished run again, all of it or its failed jobs: a new task, for the new attempt.
 *
 * The native input is that of {@link watchRun}, and `failed_only`.
 */
export function rerun(options: RerunOptions): WorkflowAdapter {
  checkOptions("rerun", options, OPTIONS);
  if (options.repositories === undefined) repositoryOf(options, {});
  const api = apiOf(options);
  const session = openSession(api, options);

  async function start({ input, signal }: StartRequest): Promise<StartedRun> {
    const args = argumentsOf(input);
    const failedOnly = failedOnlyOf(options, args);
    const { repository, run } = await namedRun(session, options, args, signal);
    if (run.status !== "completed" || run.conclusion === "action_required") {
      throw refused("StillRunning", "The run has not ended: it can be run again when it has.");
    }
    const what = failedOnly ? "rerun-failed-jobs" : "rerun";
    const route = `/repos/{owner}/{repo}/actions/runs/{run_id}/${what}`;
    await api.send(repository, route, { run_id: run.id }, signal);
    return attemptOf(repository, run, run.attempt + 1);
  }

  /** After a re-run whose answer was lost: the attempt that began since, if no other task has it. */
  async function find(request: FindRequest): Promise<StartedRun | undefined> {
    const { input, startedAtMs, lastStartedAtMs, signal } = request;
    const { repository, run } = await namedRun(session, options, argumentsOf(input), signal);
    const sinceMs = api.toServerTimeMs(startedAtMs) - SKEW_MS;
    const isNew = run.attempt > 1 && run.startedAtMs >= sinceMs;
    if (isNew && !(await request.isClaimed(claimOf(run.id, run.attempt)))) {
      return attemptOf(repository, run, run.attempt);
    }
    if (Date.now() - lastStartedAtMs < (options.appearsWithinMs ?? APPEARS_WITHIN_MS)) {
      throw notYet("No new attempt is visible yet.", LOOK_AGAIN_MS);
    }
    return undefined;
  }

  return {
    ...runParts(session, options, async (ref) => runOf(ref)),
    start,
    find,
    read: (ref, request) => readRun(session, runOf(ref), request),
    stop: (ref, request) => stopRun(session, runOf(ref), request, options.forceCancelAfterMs),
  };
}

/** JSON Schema of {@link rerun}'s arguments. */
export function rerunSchema(options: RerunOptions): JsonObject {
  const { properties } = targetProperties(options);
  const failedOnly = {
    type: "boolean",
    description: "Only the failed jobs and those that depend on them.",
    default: options.jobs !== "all",
  };
  return {
    type: "object",
    properties: { ...properties, ...RUN_ARGUMENTS, failed_only: failedOnly },
    additionalProperties: false,
  };
}

function failedOnlyOf(options: RerunOptions, args: JsonObject): boolean {
  const given = args["failed_only"];
  if (given === undefined || given === null) return options.jobs !== "all";
  if (typeof given === "boolean") return given;
  throw refused("InvalidInput", "`failed_only` must be true or false.");
}

/** The attempt, which this task takes for itself: two re-runs of one run are two attempts. */
function attemptOf(repository: Repository, run: Run, attempt: number): StartedRun {
  return {
    ref: toRunRef(knownRun(repository.owner, repository.repo, run.id, attempt)),
    url: `${run.url}/attempts/${attempt}`,
    claim: claimOf(run.id, attempt),
  };
}

function claimOf(runId: string, attempt: number): string {
  return `${runId}#${attempt}`;
}
