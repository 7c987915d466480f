import type { ErrorVerdict } from "./adapter.js";

/**
 * Stable codes of the errors that Taskferry itself raises. Messages are free to change, codes are not.
 * `wire/` is the only place that turns them into JSON-RPC codes.
 */
export type WorkflowErrorCode =
  | "task_not_found"
  | "task_expired"
  | "task_exists"
  | "task_terminal"
  | "idempotency_conflict"
  | "invalid_arguments"
  | "invalid_cursor"
  | "invalid_request"
  | "unknown_workflow"
  | "limit_exceeded"
  | "not_supported"
  | "engine_rejected"
  | "engine_unavailable"
  | "start_outcome_unknown"
  | "run_lost"
  | "contract_violated"
  | "illegal_transition"
  | "stale_version"
  | "store_unavailable"
  | "configuration"
  | "closed";

/** What comes with a {@link WorkflowError}. */
export interface WorkflowErrorOptions {
  readonly cause?: unknown;
  /** Whether the same call may go through later. @default false */
  readonly retryable?: boolean;
  readonly retryAfterMs?: number;
  /** Safe for the client. */
  readonly data?: Readonly<Record<string, unknown>>;
}

/** An error of Taskferry or of an engine, in Taskferry's words. The message is fit for the client. */
export class WorkflowError extends Error {
  override readonly name = "WorkflowError";
  readonly code: WorkflowErrorCode;
  readonly retryable: boolean;
  readonly retryAfterMs: number | undefined;
  readonly data: Readonly<Record<string, unknown>> | undefined;

  constructor(code: WorkflowErrorCode, message: string, options: WorkflowErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.retryable = options.retryable ?? false;
    this.retryAfterMs = options.retryAfterMs;
    this.data = options.data;
  }
}

/** Whether an error is a {@link WorkflowError}, even one made by another copy of this package. */
export function isWorkflowError(error: unknown): error is WorkflowError {
  return error instanceof Error && error.name === "WorkflowError" && "code" in error && "retryable" in error;
}

/**
 * For adapters: an error that already knows its verdict. Throw it when your own check refuses a call
 * before the engine is asked (input too large, wrong account), or when an SDK error needs explaining in place.
 */
export class EngineError extends Error {
  override readonly name = "EngineError";
  readonly verdict: ErrorVerdict;

  constructor(verdict: ErrorVerdict & { readonly message: string }, cause?: unknown) {
    super(verdict.message, cause === undefined ? undefined : { cause });
    this.verdict = verdict;
  }
}

/** Whether an error is an {@link EngineError}, even one made by another copy of this package. */
export function isEngineError(error: unknown): error is EngineError {
  return error instanceof Error && error.name === "EngineError" && "verdict" in error;
}
