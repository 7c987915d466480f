import {
  checkOptions,
  EngineError,
  type Json,
  type JsonObject,
  type Question,
  type RunProgress,
  type RunRef,
  type RunState,
  type WorkflowAdapter,
} from "@taskferry/core";
import { type Api, call, explain, query, quoted, RestateError } from "./http.js";
import { statusOf } from "./status.js";

export { RestateError } from "./http.js";
export { RUN_STATUS } from "./status.js";

/** Options of {@link restateWorkflow}. */
export interface RestateWorkflowOptions {
  /** The workflow's service name. */
  readonly service: string;
  /** @default "http://127.0.0.1:8080" */
  readonly ingressUrl?: string;
  /** @default "http://127.0.0.1:9070" */
  readonly adminUrl?: string;
  /** Bearer token for both APIs, e.g. an API key of Restate Cloud. @default none */
  readonly token?: string;
}

interface RestateRef {
  readonly invocationId: string;
  readonly workflowId: string;
}

/**
 * Makes a Restate workflow a Taskferry workflow. The start key is the workflow id, which Restate runs once.
 * A workflow asks by two conventions: its state `questions` holds what is open, and its shared handler `answer` takes
 * `{ key, answer }`. Its state `progress` holds `{ done, total }`. All three are optional.
 *
 * @example
 * restateWorkflow({ service: "signup" })
 */
export function restateWorkflow(options: RestateWorkflowOptions): WorkflowAdapter {
  const known = { service: true, ingressUrl: true, adminUrl: true, token: true } as const;
  checkOptions("restateWorkflow", options, known);
  const { service, token } = options;
  const ingress: Api = { url: options.ingressUrl ?? "http://127.0.0.1:8080", token };
  const admin: Api = { url: options.adminUrl ?? "http://127.0.0.1:9070", token };
  const path = (workflowId: string, handler: string) =>
    `/${encodeURIComponent(service)}/${encodeURIComponent(workflowId)}/${handler}`;

  return {
    engine: "restate",
    startsOnce: true,

    async start({ key, input, signal }) {
      const sent = (await call(ingress, "POST", path(key, "run/send"), signal, input)) as JsonObject;
      return { ref: { invocationId: String(sent["invocationId"]), workflowId: key } };
    },

    async read(ref, { signal }) {
      const { invocationId, workflowId } = asRestateRef(ref);
      const [invocation] = await query(admin, invocationSql(invocationId), signal);
      if (invocation === undefined) throw gone("Restate knows no such invocation");
      const native = nativeOf(invocation);
      if (native.startsWith("completed")) return endOf(native, ingress, invocationId, signal);
      const state = await stateOf(admin, service, workflowId, signal);
      return { native, status: statusOf(native), ...state, ...asking(native, state.questions) };
    },

    async stop(ref, { signal }) {
      const { invocationId } = asRestateRef(ref);
      await goneIf([404, 409], call(admin, "PATCH", `/invocations/${invocationId}/cancel`, signal));
    },

    async answer(ref, key, answer, { signal }) {
      const { workflowId } = asRestateRef(ref);
      // 409 is what resolving a promise twice throws; 410 is how `answer` refuses a key that is not open.
      const given = { key, answer } as unknown as Json;
      await goneIf([409, 410], call(ingress, "POST", path(workflowId, "answer"), signal, given));
    },

    explain,
  };
}

function invocationSql(id: string): string {
  return `select status, completion_result, completion_failure from sys_invocation where id = ${quoted(id)}`;
}

/** Restate has one word for every end; how it ended is in other columns. */
function nativeOf({ status, completion_result: result, completion_failure: failure }: JsonObject): string {
  if (status !== "completed" || typeof result !== "string") return String(status);
  // What a handler throws when its invocation is cancelled (or killed).
  const wasStopped = /^\[409\] (cancelled|killed)$/i.test(String(failure));
  return `completed/${wasStopped ? "cancelled" : result}`;
}

async function endOf(native: string, ingress: Api, id: string, signal: AbortSignal): Promise<RunState> {
  const status = statusOf(native);
  if (status !== "completed") return { native, status };
  try {
    const value = await call(ingress, "GET", `/restate/invocation/${id}/output`, signal);
    return { native, status, output: value === undefined ? {} : { value } };
  } catch (error) {
    if (native !== "completed/failure" || !(error instanceof RestateError)) throw error;
    const { code, message, source } = JSON.parse(error.said) as Record<string, string | number>;
    // Not about the workflow: the ingress itself could not tell.
    if (source !== "invocation") throw error;
    return { native, status, failure: { code: `Restate.${code}`, message: String(message) } };
  }
}

/** What the workflow tells of itself. */
async function stateOf(admin: Api, service: string, workflowId: string, signal: AbortSignal) {
  const rows = await query(
    admin,
    `select key, value_utf8 from state where service_name = ${quoted(service)} ` +
      `and service_key = ${quoted(workflowId)} and key in ('questions', 'progress')`,
    signal,
  );
  const told = new Map(rows.map((row) => [row["key"], JSON.parse(String(row["value_utf8"])) as Json]));
  const progress = told.get("progress") as unknown as RunProgress | undefined;
  const questions = (told.get("questions") ?? []) as unknown as readonly Question[];
  return { ...(progress !== undefined && { progress }), questions };
}

/** A workflow that has asked is suspended or still running, in Restate's words. */
function asking(native: string, questions: readonly Question[]): Partial<RunState> {
  return questions.length > 0 && statusOf(native) === "working" ? { status: "input_required" } : {};
}

function gone(message: string, cause?: unknown): EngineError {
  return new EngineError({ kind: "gone", message }, cause);
}

async function goneIf(statuses: readonly number[], calling: Promise<unknown>): Promise<void> {
  try {
    await calling;
  } catch (error) {
    if (error instanceof RestateError && statuses.includes(error.status)) throw gone("It has ended", error);
    throw error;
  }
}

function asRestateRef(ref: RunRef): RestateRef {
  return ref as unknown as RestateRef;
}
