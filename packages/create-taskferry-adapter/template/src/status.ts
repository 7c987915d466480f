import type { RunStatus } from "@taskferry/core";

/** Every word that the engine has for a job's state, and what it means. Cite the page that lists them here. */
export const RUN_STATUS = {
  queued: "submitted",
  running: "working",
  waiting: "input_required",
  done: "completed",
  /** The job ran and failed: `completed`, with a failure. `failed` is for calls that could not be carried out. */
  failed: "completed",
  stopped: "cancelled",
} as const satisfies Record<string, RunStatus>;

/** A word that the engine may learn one day is no end: core keeps the last status and logs the word. */
export function statusOf(native: string): RunStatus {
  return Object.hasOwn(RUN_STATUS, native) ? RUN_STATUS[native as keyof typeof RUN_STATUS] : "unchanged";
}
