import { EngineError, isJsonObject, type Json, type RunRef } from "@taskferry/core";

/**
 * A run whose id is known.
 *
 * Only what a webhook can rebuild goes in here: core finds the tasks of an event by comparing refs.
 * `owner` and `repo` are lower case, because GitHub's names are case-insensitive.
 */
export interface KnownRun {
  readonly owner: string;
  readonly repo: string;
  readonly runId: string;
  /** The attempt that the task is about. Absent: the first, which is what a dispatch makes. */
  readonly attempt?: number;
}

/** A dispatch that GitHub accepted without telling the run's id. */
export interface AcceptedDispatch {
  readonly owner: string;
  readonly repo: string;
  readonly workflow: string;
  /** The branch or tag that was dispatched: the run's `head_branch`. */
  readonly branch: string;
  readonly key: string;
  /** Whether the run shows `key` in its name. */
  readonly correlated: boolean;
  /** No run of this dispatch is older, in epoch milliseconds by GitHub's clock. */
  readonly sinceMs: number;
  /** Run ids that were there before the dispatch. */
  readonly before?: readonly string[];
  /** Run ids that appeared while no other dispatch of this process was on its way. */
  readonly seen?: readonly string[];
  /** Another dispatch of this process had no run yet when this one left. */
  readonly contested?: boolean;
}

export type GitHubRef = KnownRun | AcceptedDispatch;

/** The ref of a run, with the properties that make it comparable. */
export function knownRun(owner: string, repo: string, runId: string, attempt = 1): KnownRun {
  const ref = { owner: owner.toLowerCase(), repo: repo.toLowerCase(), runId };
  return attempt === 1 ? ref : { ...ref, attempt };
}

/** Whether the run's id is known. */
export function isKnown(ref: GitHubRef): ref is KnownRun {
  return "runId" in ref;
}

/** A ref as the JSON that core stores. */
export function toRunRef(ref: GitHubRef): RunRef {
  return { ...ref } as unknown as Json;
}

/** A stored ref, checked: it may have been written by another version of this package. */
export function parseRef(ref: RunRef): GitHubRef {
  if (isJsonObject(ref) && typeof ref["owner"] === "string" && typeof ref["repo"] === "string") {
    if (typeof ref["runId"] === "string") return ref as unknown as KnownRun;
    if (typeof ref["workflow"] === "string" && typeof ref["key"] === "string") {
      return ref as unknown as AcceptedDispatch;
    }
  }
  throw new EngineError({
    kind: "rejected",
    code: "InvalidRef",
    message: "The stored reference does not name a GitHub Actions run.",
  });
}
