import type { Json } from "@taskferry/core";
import { EngineError } from "@taskferry/core";
import type { Connection } from "./connection.js";
import { untilAborted } from "./connection.js";
import type { Execution } from "./execution.js";
import { type WorkflowName, workflowResource } from "./names.js";

/** How executions are created. */
export interface StartOptions {
  /** What Cloud Logging hears of the workflow's calls. @default what the workflow itself says */
  readonly callLogLevel?: "LOG_ALL_CALLS" | "LOG_ERRORS_ONLY" | "LOG_NONE";
  /**
   * What happens when the project already runs as many executions as it may: `queue` puts the execution into the
   * backlog, `reject` refuses it (core then tries again later). `reject` is sent over REST, because the generated
   * client does not know the field.
   * @default "queue"
   */
  readonly concurrencyOverflow?: "queue" | "reject";
  /** More labels for every execution: `[a-z0-9_-]`, at most 63 characters each. */
  readonly labels?: Readonly<Record<string, string>>;
}

/** The label by which an execution is found again. */
export const KEY_LABEL = "taskferry-id";

/** The documented limit of the argument, as UTF-8. @see https://cloud.google.com/workflows/quotas */
export const MAX_ARGUMENT_BYTES = 32 * 1024;

/**
 * The execution's `argument`: JSON text, stringified exactly once. Nothing becomes `{}`, because an omitted argument
 * is null inside the workflow and breaks every `args.x`.
 */
export function executionArgument(input: Json | undefined): string {
  const argument = input === undefined || input === null ? "{}" : JSON.stringify(input);
  const bytes = Buffer.byteLength(argument);
  if (bytes > MAX_ARGUMENT_BYTES) {
    const message = `The workflow's argument has ${bytes} bytes, Google Cloud Workflows takes ${MAX_ARGUMENT_BYTES}`;
    throw new EngineError({ kind: "rejected", code: "ARGUMENT_TOO_LARGE", message });
  }
  return argument;
}

/** Creates an execution that carries the key. */
export async function createExecution(
  connection: Connection,
  workflow: WorkflowName,
  options: StartOptions,
  request: { readonly key: string; readonly input: Json; readonly signal: AbortSignal },
): Promise<Execution> {
  const parent = workflowResource(workflow);
  const execution = {
    argument: executionArgument(request.input),
    labels: { ...options.labels, [KEY_LABEL]: request.key },
    ...(options.callLogLevel && { callLogLevel: options.callLogLevel }),
  };
  if (options.concurrencyOverflow === "reject") {
    const url = `${connection.executionsUrl}/v1/${parent}/executions`;
    const body = { ...execution, disableConcurrencyQuotaOverflowBuffering: true };
    return (await connection.rest({ method: "POST", url, body, signal: request.signal })) as Execution;
  }
  const client = await connection.executions();
  request.signal.throwIfAborted();
  const [created] = await untilAborted(client.createExecution({ parent, execution }), request.signal);
  return created;
}
