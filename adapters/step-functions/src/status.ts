import type { ExecutionStatus } from "@aws-sdk/client-sfn";
import type { RunStatus } from "@taskferry/core";

/**
 * The native state map: every `ExecutionStatus`, and with it every `SyncExecutionStatus`.
 * @see https://docs.aws.amazon.com/step-functions/latest/apireference/API_DescribeExecution.html
 */
export const RUN_STATUS: Readonly<Record<ExecutionStatus, RunStatus>> = {
  RUNNING: "working",
  // A child of a Map Run that will be run again.
  PENDING_REDRIVE: "working",
  SUCCEEDED: "completed",
  // The workflow ran and failed, which is a result like any other.
  FAILED: "completed",
  TIMED_OUT: "completed",
  ABORTED: "cancelled",
};

/** What a native word means to core. A word that AWS adds some day changes nothing. */
export function runStatus(native: string): RunStatus {
  return Object.hasOwn(RUN_STATUS, native) ? RUN_STATUS[native as ExecutionStatus] : "unchanged";
}
