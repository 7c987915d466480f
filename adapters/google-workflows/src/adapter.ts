import {
  checkOptions,
  EngineError,
  type RunRef,
  type RunState,
  type StartedRun,
  type WorkflowAdapter,
} from "@taskferry/core";
import { type Connection, type ConnectionOptions, connection, untilAborted } from "./connection.js";
import { canonicalCode, explainError, explainStart } from "./errors.js";
import { executionsOf, type IdTokenVerifier, type PushOptions } from "./events.js";
import { describeExecution, type Execution } from "./execution.js";
import { type FindOptions, findExecution } from "./find.js";
import { consolePage, executionId, executionResource, parseExecution, type WorkflowName } from "./names.js";
import { deliverAnswer, openQuestions, type QuestionOptions } from "./questions.js";
import { createExecution, type StartOptions } from "./start.js";
import { executionStatus } from "./status.js";

/** A workflow on Google Cloud, and how to work with it. */
export interface GoogleWorkflowsOptions extends WorkflowName, ConnectionOptions, StartOptions {
  /** How the execution of an interrupted start is searched. */
  readonly find?: FindOptions;
  /**
   * Whether callbacks that the workflow waits for become questions. It costs one more REST call (permission
   * `workflows.callbacks.list`) for each read of a running execution.
   * @default false
   */
  readonly questions?: boolean | QuestionOptions;
  /** Takes Pub/Sub push deliveries of a log sink. @default no `events` */
  readonly push?: PushOptions;
  /**
   * How long an execution may stay UNAVAILABLE before it counts as lost, in milliseconds. A disabled KMS key can be
   * enabled again.
   * @default 86400000 (24 hours)
   */
  readonly unavailableAfterMs?: number;
}

const OPTIONS = {
  project: true,
  location: true,
  workflow: true,
  client: true,
  auth: true,
  credentials: true,
  keyFilename: true,
  fallback: true,
  apiEndpoint: true,
  restEndpoint: true,
  workflowsEndpoint: true,
  insecure: true,
  callLogLevel: true,
  concurrencyOverflow: true,
  labels: true,
  find: true,
  questions: true,
  push: true,
  unavailableAfterMs: true,
} as const satisfies Readonly<Record<keyof GoogleWorkflowsOptions, true>>;

/** The adapter of one workflow. */
export interface GoogleWorkflowsAdapter extends WorkflowAdapter {
  /**
   * Takes an execution that somebody else started: by its resource name or its id. Throws when it is not one of this
   * workflow's or does not exist.
   */
  adopt(nameOrId: string, request: { readonly signal: AbortSignal }): Promise<StartedRun>;
}

/**
 * Google Cloud Workflows: every run is one execution of the workflow.
 *
 * @throws {TypeError} when project, location or workflow is not a plain name
 * @throws WorkflowError `configuration` for an option that there is not
 * @see https://cloud.google.com/workflows/docs
 */
export function googleWorkflows(options: GoogleWorkflowsOptions): GoogleWorkflowsAdapter {
  checkOptions("googleWorkflows", options, OPTIONS);
  const workflow = checkedName(options);
  const api = connection(options);
  const questions = options.questions === true ? {} : options.questions || undefined;
  const verifier = lazyVerifier(options.push);

  const started = (execution: Execution): StartedRun => {
    const id = executionId(execution.name ?? "");
    if (id === undefined) throw new Error("Google Cloud Workflows answered without an execution name");
    const state = describe(execution, id);
    return { ref: executionResource(workflow, id), url: consolePage(workflow, id), state };
  };
  const describe = (execution: Execution, id: string, previousNative?: string): RunState =>
    describeExecution(execution, {
      workflow,
      execution: id,
      previousNative,
      nowMs: Date.now(),
      lostAfterMs: options.unavailableAfterMs ?? 86_400_000,
    });

  return {
    engine: "google-workflows",
    consoleUrl: consolePage(workflow),

    async start(request) {
      try {
        return started(await createExecution(api, workflow, options, request));
      } catch (error) {
        throw explainStart(error, workflow.workflow);
      }
    },

    async find(request) {
      const execution = await findExecution(api, workflow, options.find ?? {}, request);
      return execution && started(execution);
    },

    async read(ref, { signal, native }) {
      const { name, id } = refOf(ref);
      const execution = await getExecution(api, name, signal);
      const state = describe(execution, id, native);
      if (questions === undefined || state.native !== "ACTIVE") return state;
      return withQuestions(state, () => openQuestions(api, name, execution, questions, signal));
    },

    async stop(ref, { signal }) {
      const { name } = refOf(ref);
      const client = await api.executions();
      try {
        await untilAborted(client.cancelExecution({ name }), signal);
      } catch (error) {
        const code = canonicalCode(error);
        if (code !== "FAILED_PRECONDITION" && code !== "INVALID_ARGUMENT") throw error;
        // What cancelling a finished execution answers is not documented, so the execution itself is asked.
        if (!hasEnded(await getExecution(api, name, signal))) throw error;
      }
    },

    ...(questions !== undefined && {
      async answer(ref, questionKey, answer, { signal }) {
        await deliverAnswer(api, refOf(ref).name, questionKey, answer, questions, signal);
      },
    }),

    ...(options.push !== undefined && {
      async events(request) {
        return executionsOf(request, workflow.project, options.push as PushOptions, await verifier());
      },
    }),

    async adopt(nameOrId, { signal }) {
      const parsed = parseExecution(nameOrId);
      const id = executionId(nameOrId);
      // The project may be written as its number, which only Google can compare.
      const isOurs =
        parsed === undefined ||
        (parsed.workflow === workflow.workflow && parsed.location === workflow.location);
      if (id === undefined || !isOurs) {
        const message = `Not an execution of ${workflow.workflow} in ${workflow.location}`;
        throw new EngineError({ kind: "rejected", code: "WRONG_WORKFLOW", message });
      }
      const execution = await getExecution(api, executionResource(workflow, id), signal);
      return started({ ...execution, name: executionResource(workflow, id) });
    },

    explain: explainError,
    close: () => api.close(),
  };

  /** Refs come from the store: one of another workflow means that the configuration has changed under a running task. */
  function refOf(ref: RunRef): { readonly name: string; readonly id: string } {
    const parsed = typeof ref === "string" ? parseExecution(ref) : undefined;
    if (typeof ref !== "string" || parsed === undefined) {
      const message = "The stored reference is not an execution's name";
      throw new EngineError({ kind: "rejected", code: "BAD_REF", message });
    }
    return { name: ref, id: parsed.execution };
  }
}

async function getExecution(api: Connection, name: string, signal: AbortSignal): Promise<Execution> {
  const client = await api.executions();
  signal.throwIfAborted();
  const [execution] = await untilAborted(client.getExecution({ name, view: "FULL" }), signal);
  return execution;
}

/**
 * The state tells the truth without its questions. An account that may not list callbacks must still hear how the run
 * ends, so a refusal becomes a remark; anything that may pass is thrown, and the whole read comes again.
 */
async function withQuestions(
  state: RunState,
  ask: () => ReturnType<typeof openQuestions>,
): Promise<RunState> {
  try {
    const questions = await ask();
    return questions.length === 0 ? state : { ...state, status: "input_required", questions };
  } catch (error) {
    const verdict = explainError(error);
    if (verdict?.kind !== "rejected" && verdict?.kind !== "gone") throw error;
    return { ...state, message: `${state.message} · its callbacks cannot be listed (${verdict.code})` };
  }
}

function hasEnded({ state }: Execution): boolean {
  const { status } = executionStatus(state);
  return status === "completed" || status === "cancelled";
}

function lazyVerifier(push: PushOptions | undefined): () => Promise<IdTokenVerifier> {
  let verifier: Promise<IdTokenVerifier> | undefined = push?.verifier && Promise.resolve(push.verifier);
  return () => {
    // Kept, because it caches Google's certificates.
    verifier ??= import("google-auth-library").then(({ OAuth2Client }) => new OAuth2Client());
    return verifier;
  };
}

function checkedName({ project, location, workflow }: WorkflowName): WorkflowName {
  for (const [what, name] of Object.entries({ project, location, workflow })) {
    // A slash or a query would reach another resource with the server's credentials.
    if (!/^[A-Za-z0-9][A-Za-z0-9.:_-]*$/.test(name))
      throw new TypeError(`googleWorkflows: ${what} must be a plain name`);
  }
  return { project, location, workflow };
}
