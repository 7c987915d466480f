import type { RunStatus } from "@taskferry/core";

/**
 * Every state of an execution, by its name, with the number that stands for it on the wire.
 *
 * @see https://cloud.google.com/workflows/docs/reference/executions/rest/v1/projects.locations.workflows.executions#State
 */
export const EXECUTION_STATES = {
  STATE_UNSPECIFIED: { number: 0, status: "unchanged" },
  ACTIVE: { number: 1, status: "working" },
  SUCCEEDED: { number: 2, status: "completed" },
  /** The workflow ran and failed: an end of its own, so `completed` with a failure. */
  FAILED: { number: 3, status: "completed" },
  CANCELLED: { number: 4, status: "cancelled" },
  /** Its data cannot be read just now (a revoked KMS key). It may come back, so it is not an end. */
  UNAVAILABLE: { number: 5, status: "working" },
  /** In the backlog: more executions than the project may run at once. */
  QUEUED: { number: 6, status: "submitted" },
} as const satisfies Readonly<Record<string, { readonly number: number; readonly status: RunStatus }>>;

/** The name of a state. */
export type ExecutionState = keyof typeof EXECUTION_STATES;

/**
 * What a state means. Over gRPC a state that the client's proto does not list arrives as a bare number, over REST as
 * its name or as `STATE_UNSPECIFIED`; both keep the last status.
 */
export function executionStatus(state: string | number | null | undefined): {
  readonly native: string;
  readonly known: ExecutionState | undefined;
  readonly status: RunStatus;
} {
  const known = stateName(state ?? "STATE_UNSPECIFIED");
  if (known !== undefined) return { native: known, known, status: EXECUTION_STATES[known].status };
  const native = typeof state === "number" ? `STATE_${state}` : String(state).slice(0, 100);
  return { native, known, status: "unchanged" };
}

function stateName(state: string | number): ExecutionState | undefined {
  const names = Object.keys(EXECUTION_STATES) as ExecutionState[];
  return names.find((name) =>
    typeof state === "number" ? EXECUTION_STATES[name].number === state : name === state,
  );
}
