import type { RunStatus } from "@taskferry/core";

/** Where a run is, in this adapter's own words. `native` adds the exit status or the signal behind the last ones. */
export type ProcessState =
  | "spooled"
  | "running"
  | "asking"
  | "stopping"
  | "unsupervised"
  | "exited"
  | "signalled"
  | "timed out"
  | "stopped"
  | "not started"
  | "lost";

/** The native state map: what each word means to core. */
export const RUN_STATUS: Readonly<Record<ProcessState, RunStatus>> = {
  /** The order is on disk, no supervisor has taken it yet. */
  spooled: "submitted",
  running: "working",
  asking: "input_required",
  /** A stop was asked for and the command has not ended yet. */
  stopping: "working",
  /** The supervisor is dead, the command goes on: its end will be seen, its exit status will not. */
  unsupervised: "working",
  /** Well with status 0, badly with any other: both are results. */
  exited: "completed",
  signalled: "completed",
  "timed out": "completed",
  stopped: "cancelled",
  /** The command could not be run at all: not found, not executable. */
  "not started": "failed",
  /** Supervisor and command are gone and left no exit status. */
  lost: "failed",
};
