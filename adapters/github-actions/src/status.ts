import type { RunStatus } from "@taskferry/core";

/** What one of GitHub's words means. */
export interface NativeMeaning {
  readonly status: RunStatus;
  /** With `completed`: whether the run ended well (`output`) or badly (`failure`). */
  readonly outcome?: "output" | "failure";
}

/**
 * Every `status` of a workflow run, except `completed`, whose meaning is in {@link CONCLUSIONS}.
 * Source: the `workflow-run-status` parameter and the `workflow-run` schema of GitHub's OpenAPI description.
 */
export const STATUSES: Readonly<Record<string, NativeMeaning>> = {
  queued: { status: "submitted" },
  requested: { status: "submitted" },
  /** Held back by a concurrency group. */
  pending: { status: "submitted" },
  in_progress: { status: "working" },
  /**
   * For an environment's protection rules. A question only if this identity may review the deployment;
   * the reader turns it into `working` otherwise.
   */
  waiting: { status: "input_required" },
};

/** Every `conclusion` of a run whose `status` is `completed`. */
export const CONCLUSIONS: Readonly<Record<string, NativeMeaning>> = {
  success: { status: "completed", outcome: "output" },
  neutral: { status: "completed", outcome: "output" },
  /** Every job was skipped: nothing was done, nothing failed. */
  skipped: { status: "completed", outcome: "output" },
  failure: { status: "completed", outcome: "failure" },
  timed_out: { status: "completed", outcome: "failure" },
  /** The workflow file is invalid at this ref, or no job could begin. */
  startup_failure: { status: "completed", outcome: "failure" },
  cancelled: { status: "cancelled" },
  /** GitHub gave the run up: it does not know its outcome. */
  stale: { status: "unknown" },
  /** A pull request from a fork waits for a maintainer. Not an end, although `status` is `completed`. */
  action_required: { status: "input_required" },
};

/** What a word that GitHub adds later means: keep what is known. */
export const UNKNOWN_WORD: NativeMeaning = { status: "unchanged" };

/** The meaning of a run's `status` and `conclusion`. Words this table does not have, and nulls, are `unchanged`. */
export function meaningOf(status: string | null, conclusion: string | null): NativeMeaning {
  const table = status === "completed" ? CONCLUSIONS : STATUSES;
  const word = status === "completed" ? conclusion : status;
  return word !== null && Object.hasOwn(table, word) ? (table[word] ?? UNKNOWN_WORD) : UNKNOWN_WORD;
}

/** The native word of a run, for rows and logs: `"in_progress"`, `"completed/success"`. */
export function nativeWord(status: string | null, conclusion: string | null): string {
  return status === "completed" ? `completed/${conclusion ?? "null"}` : (status ?? "null");
}

/** Conclusions of a job or step that make it worth showing as a failure. */
export function isFailed(conclusion: string | null): boolean {
  return conclusion !== null && CONCLUSIONS[conclusion]?.outcome === "failure";
}
