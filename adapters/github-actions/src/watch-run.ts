import {
  checkOptions,
  type Json,
  type JsonObject,
  type StartedRun,
  type StartRequest,
  type WorkflowAdapter,
} from "@taskferry/core";
import { refused } from "./errors.js";
import { COMMON_OPTIONS, type WatchRunOptions } from "./options.js";
import { readRun } from "./read.js";
import { isKnown, type KnownRun, knownRun, parseRef, toRunRef } from "./ref.js";
import { namedRun, RUN_ARGUMENTS } from "./run-argument.js";
import { runParts } from "./run-parts.js";
import { openSession } from "./session.js";
import { stopRun } from "./stop.js";
import { argumentsOf, repositoryOf, targetProperties } from "./target.js";
import { apiOf } from "./workflow-file.js";

const OPTIONS = {
  workflow: true,
  cancelRun: true,
  ...COMMON_OPTIONS,
} as const satisfies Readonly<Record<keyof WatchRunOptions, true>>;

/**
 * Makes tasks of runs that exist already: of a run id or link, or of the last run of a branch or commit. Starts nothing.
 *
 * The native input is `{ run: "123" | "https://github.com/…/actions/runs/123" }`, `{ branch }` or `{ commit }`
 * (with `repository`, where that is open).
 */
export function watchRun(options: WatchRunOptions): WorkflowAdapter {
  checkOptions("watchRun", options, OPTIONS);
  if (options.repositories === undefined) repositoryOf(options, {});
  const api = apiOf(options);
  const session = openSession(api, options);

  async function start({ input, signal }: StartRequest): Promise<StartedRun> {
    const { repository, run, attempt } = await namedRun(session, options, argumentsOf(input), signal);
    // Pinned: the task is about what was there when it was made.
    const ref = knownRun(repository.owner, repository.repo, run.id, attempt ?? run.attempt);
    return { ref: toRunRef(ref), url: run.url };
  }

  return {
    ...runParts(session, options, async (ref) => runOf(ref)),
    // Looking twice starts nothing twice.
    startsOnce: true,
    start,
    read: (ref, request) => readRun(session, runOf(ref), request),
    ...(options.cancelRun === true
      ? { stop: (ref, request) => stopRun(session, runOf(ref), request, options.forceCancelAfterMs) }
      : {}),
  };
}

/** JSON Schema of {@link watchRun}'s arguments. */
export function watchRunSchema(options: WatchRunOptions): JsonObject {
  const { properties } = targetProperties(options);
  return {
    type: "object",
    properties: { ...properties, ...RUN_ARGUMENTS },
    additionalProperties: false,
  };
}

/** The run of a stored ref; a dispatch without a run is none that is watched. */
export function runOf(stored: Json): KnownRun {
  const ref = parseRef(stored);
  if (isKnown(ref)) return ref;
  throw refused("InvalidRef", "The stored reference does not name a run.");
}
