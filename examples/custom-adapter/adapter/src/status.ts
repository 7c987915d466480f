import type { RunStatus } from "@taskferry/core";

/**
 * The `status` of `sys_invocation`, as Restate's introspection tells it.
 * `completed` is split by `completion_result`. See https://docs.restate.dev/references/sql-introspection
 */
export const RUN_STATUS = {
  scheduled: "submitted",
  pending: "submitted",
  ready: "submitted",
  running: "working",
  suspended: "working",
  /** An attempt failed, and Restate will try again: the workflow goes on. */
  "backing-off": "working",
  /** Its retries are used up, or a person has paused it; a person can resume it. */
  paused: "working",
  "completed/success": "completed",
  "completed/failure": "completed",
  "completed/cancelled": "cancelled",
} as const satisfies Record<string, RunStatus>;

/** A word that is not in the table changes nothing. */
export function statusOf(native: string): RunStatus {
  return Object.hasOwn(RUN_STATUS, native) ? RUN_STATUS[native as keyof typeof RUN_STATUS] : "unchanged";
}
