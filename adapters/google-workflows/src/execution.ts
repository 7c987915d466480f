import type { Json, JsonObject, RunFailure, RunState } from "@taskferry/core";
import { isJsonObject } from "@taskferry/core";
import { consolePage, type WorkflowName } from "./names.js";
import { executionStatus } from "./status.js";

/**
 * An execution as either transport gives it: the fields of `google.cloud.workflows.executions.v1.Execution`, with
 * enums as names or numbers, 64-bit integers as strings, and times as `{ seconds, nanos }` or RFC 3339 text.
 */
export interface Execution {
  readonly name?: string | null;
  readonly state?: string | number | null;
  readonly startTime?: unknown;
  readonly endTime?: unknown;
  readonly result?: string | null;
  readonly error?: {
    readonly payload?: string | null;
    readonly context?: string | null;
    readonly stackTrace?: { readonly elements?: readonly StackElement[] | null } | null;
  } | null;
  readonly status?: { readonly currentSteps?: readonly Step[] | null } | null;
  readonly stateError?: { readonly details?: string | null; readonly type?: string | number | null } | null;
  readonly labels?: Readonly<Record<string, string>> | null;
  readonly workflowRevisionId?: string | null;
}

interface Step {
  readonly routine?: string | null;
  readonly step?: string | null;
}

interface StackElement extends Step {
  readonly position?: { readonly line?: unknown } | null;
}

/** What a description of an execution depends on besides the execution. */
export interface DescribeContext {
  readonly workflow: WorkflowName;
  readonly execution: string;
  /** The native word that the last read stored. */
  readonly previousNative?: string | undefined;
  readonly nowMs: number;
  /** How long an execution may stay UNAVAILABLE, in milliseconds. */
  readonly lostAfterMs: number;
}

/** One execution in Taskferry's words. Questions are not in it: they come from another call. */
export function describeExecution(execution: Execution, context: DescribeContext): RunState {
  const { native, known, status } = executionStatus(execution.state);
  const url = consolePage(context.workflow, context.execution);
  const base = { native, status, url };
  const revision = execution.workflowRevisionId ? `revision ${execution.workflowRevisionId}` : undefined;
  switch (known) {
    case "QUEUED":
      return { ...base, message: line(["Queued until the project may run one more execution", revision]) };
    case "ACTIVE":
      return { ...base, message: line([steps(execution) ?? "Running", revision]) };
    case "SUCCEEDED":
      return {
        ...base,
        message: line(["Succeeded", took(execution), revision]),
        output: output(execution.result),
      };
    case "FAILED":
      return { ...base, message: line(["Failed", took(execution), revision]), failure: failure(execution) };
    case "CANCELLED":
      // Cancelling ends the execution only. What its steps had called is not known to have stopped.
      return { ...base, message: line(["Cancelled; what it had called may still be running", revision]) };
    case "UNAVAILABLE":
      return unavailable(execution, context, base);
    default:
      return base;
  }
}

/** When an execution started, in epoch milliseconds; `undefined` while it is queued. */
export function startedAtMs(execution: Execution): number | undefined {
  return timeMs(execution.startTime);
}

/** The names of the steps that the execution is at. */
export function currentSteps(execution: Execution): readonly string[] {
  return (execution.status?.currentSteps ?? []).map(({ step }) => step ?? "").filter((step) => step !== "");
}

function steps(execution: Execution): string | undefined {
  const current = (execution.status?.currentSteps ?? []).filter(({ step }) => step);
  if (current.length === 0) return undefined;
  const named = current.map(({ routine, step }) =>
    routine && routine !== "main" ? `${routine}.${step}` : `${step}`,
  );
  return `${named.length === 1 ? "Step" : "Steps"} ${named.join(", ")}`;
}

function output(result: string | null | undefined): NonNullable<RunState["output"]> {
  if (result === undefined || result === null || result === "") return { value: null };
  const value = parseJson(result);
  return value === undefined ? { text: result } : { value };
}

function failure({ error, workflowRevisionId }: Execution): RunFailure {
  const raw = error?.payload ?? "";
  const payload = parseJson(raw);
  const details = isJsonObject(payload) ? payload : undefined;
  const said = details?.["message"] ?? (typeof payload === "string" ? payload : raw);
  const message = typeof said === "string" && said !== "" ? said : "The workflow failed without a message";
  const where = (error?.stackTrace?.elements ?? []).map(frame);
  // `context` is the same trace already written out; it is all there is when the elements are missing.
  const trace = where.length > 0 ? where.join("\n") : (error?.context ?? "");
  return {
    code: failureCode(details),
    message,
    text: trace === "" ? message : `${message}\n\n${trace}`,
    value: {
      payload: payload ?? raw,
      ...(trace !== "" && { stackTrace: trace.split("\n") }),
      ...(workflowRevisionId && { workflowRevisionId }),
    },
  };
}

/**
 * The tags are the error's class ("HttpError", "TimeoutError"); errors that a workflow raises itself carry a code of
 * their own choice or none. @see https://cloud.google.com/workflows/docs/reference/syntax/error-types
 */
function failureCode(details: JsonObject | undefined): string {
  const tags = details?.["tags"];
  const tag: unknown = Array.isArray(tags) ? tags[0] : undefined;
  if (typeof tag === "string") return tag;
  const code = details?.["code"];
  return typeof code === "string" || typeof code === "number" ? String(code) : "FAILED";
}

function frame({ routine, step, position }: StackElement): string {
  const at = Number(position?.line);
  const place = `in step "${step ?? "?"}", routine "${routine ?? "main"}"`;
  return Number.isFinite(at) && at > 0 ? `${place}, line ${at}` : place;
}

const UNAVAILABLE_SINCE = /^UNAVAILABLE since (\S+)$/;

/**
 * The API does not tell since when, and nothing is kept between calls: the first read writes the time into the native
 * word, which core stores and hands back.
 */
function unavailable(
  execution: Execution,
  { previousNative, nowMs, lostAfterMs }: DescribeContext,
  base: Pick<RunState, "status"> & { readonly url: string },
): RunState {
  const stored = Date.parse(UNAVAILABLE_SINCE.exec(previousNative ?? "")?.[1] ?? "");
  const sinceMs = Number.isNaN(stored) ? nowMs : stored;
  const native = `UNAVAILABLE since ${new Date(sinceMs).toISOString()}`;
  const { type, details } = execution.stateError ?? {};
  const kms = type === "KMS_ERROR" || type === 1;
  const message = line([
    `The execution's data is unavailable${kms ? " (KMS_ERROR)" : ""}${details ? `: ${details}` : ""}`,
  ]);
  if (nowMs - sinceMs < lostAfterMs) return { ...base, native, message };
  return {
    ...base,
    native,
    status: "unknown",
    message,
    failure: { code: kms ? "KMS_ERROR" : "UNAVAILABLE", message },
  };
}

/** `undefined` when the text is not JSON. */
export function parseJson(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

function line(parts: readonly (string | undefined)[]): string {
  return parts.filter((part) => part !== undefined).join(" · ");
}

function took({ startTime, endTime }: Execution): string | undefined {
  const [from, to] = [timeMs(startTime), timeMs(endTime)];
  return from === undefined || to === undefined || to < from
    ? undefined
    : `after ${((to - from) / 1000).toFixed(1)} s`;
}

function timeMs(time: unknown): number | undefined {
  if (typeof time === "string") return Number.isNaN(Date.parse(time)) ? undefined : Date.parse(time);
  if (typeof time !== "object" || time === null || !("seconds" in time)) return undefined;
  const { seconds, nanos } = time as { readonly seconds: unknown; readonly nanos?: unknown };
  const ms = Number(seconds) * 1000 + Math.floor(Number(nanos ?? 0) / 1e6);
  return Number.isFinite(ms) && ms > 0 ? ms : undefined;
}
