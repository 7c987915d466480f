import type { RunStatus } from "@taskferry/core";

/** Where a function is, in this adapter's own words. */
export type FunctionState = "running" | "asking" | "returned" | "threw" | "refused" | "aborted" | "lost";

/** The native state map: what each word means to core. */
export const RUN_STATUS: Readonly<Record<FunctionState, RunStatus>> = {
  running: "working",
  asking: "input_required",
  returned: "completed",
  // The workflow ran and failed, which is a result like any other.
  threw: "completed",
  // The function says that the call could not be carried out: see `CallRefused`.
  refused: "failed",
  aborted: "cancelled",
  // The process that ran the function is gone, and how far it came nobody knows.
  lost: "failed",
};
