import {
  DescribeStateMachineCommand,
  StartExecutionCommand,
  StartSyncExecutionCommand,
} from "@aws-sdk/client-sfn";
import {
  checkOptions,
  EngineError,
  type StartedRun,
  type StartRequest,
  type WorkflowAdapter,
  WorkflowError,
} from "@taskferry/core";
import {
  baseMachineArn,
  executionArnOf,
  executionUrl,
  isRunOf,
  machineUrl,
  parseExecutionArn,
  parseMachineArn,
} from "./arn.js";
import { CONNECTION_OPTIONS, type ConnectionOptions, connect, watchAttempts } from "./client.js";
import { discreet, errorCode } from "./errors.js";
import {
  asExecutionRef,
  checkedJson,
  EXECUTION_OPTIONS,
  type ExecutionOptions,
  Executions,
} from "./execution.js";
import { pacerOf } from "./pacing.js";
import { executionsIn, type PushOptions } from "./push.js";

/** Options of {@link stepFunctions}. */
export interface StepFunctionsOptions extends ConnectionOptions, ExecutionOptions {
  /** A state machine, one of its versions (`…:3`) or aliases (`…:PROD`). */
  readonly stateMachineArn: string;
  /**
   * An Express machine runs within its start (StartSyncExecution, five minutes at most): it cannot be stopped or
   * asked, and when the connection breaks its outcome is unknown.
   * @default "STANDARD"
   */
  readonly type?: "STANDARD" | "EXPRESS";
  /** Comes before the start key in the execution's name: `[A-Za-z0-9_-]`, 54 characters at most. @default "taskferry-" */
  readonly namePrefix?: string;
  /** Takes EventBridge deliveries. @default not taken */
  readonly push?: PushOptions;
  /** The engine's name in rows, logs and metrics. @default "aws-step-functions" */
  readonly engine?: string;
}

const OPTIONS = {
  stateMachineArn: true,
  type: true,
  namePrefix: true,
  push: true,
  engine: true,
  ...CONNECTION_OPTIONS,
  ...EXECUTION_OPTIONS,
} as const satisfies Readonly<Record<keyof StepFunctionsOptions, true>>;

/** An Express execution takes five minutes at most; the rest is for the way. */
const EXPRESS_TIMEOUT_MS = 310_000;

/**
 * Makes a workflow of an AWS Step Functions state machine, as it is.
 * @throws WorkflowError `configuration` if ARN or name prefix cannot be used, or for an option that there is not
 */
export function stepFunctions(options: StepFunctionsOptions): WorkflowAdapter {
  checkOptions("stepFunctions", options, OPTIONS);
  const { stateMachineArn, type = "STANDARD", namePrefix = "taskferry-", push } = options;
  const machine = parseMachineArn(stateMachineArn);
  if (!/^[\w-]{0,54}$/.test(namePrefix)) {
    throw new WorkflowError("configuration", "namePrefix takes at most 54 of A-Z a-z 0-9 _ -");
  }
  const connection = connect(options, machine.region);
  const executions = new Executions(connection, pacerOf(machine.home, options.readsPerSecond ?? 10), options);
  const consoleUrl = machineUrl(machine);
  const appearsWithinMs = options.appearsWithinMs ?? 60_000;
  const common = {
    engine: options.engine ?? "aws-step-functions",
    ...(consoleUrl !== undefined && { consoleUrl }),
    explain: (error: unknown) => executions.explain(error),
    close: async () => executions.close(),
  };

  if (type === "EXPRESS") {
    return {
      ...common,
      startTimeoutMs: EXPRESS_TIMEOUT_MS,

      async start({ key, input, signal }) {
        const command = new StartSyncExecutionCommand({
          stateMachineArn,
          name: namePrefix + key,
          input: checkedJson(input, "input"),
        });
        // Express knows no idempotency: a second attempt would be a second execution.
        const attempts = watchAttempts(command, { retries: false });
        const {
          executionArn = "",
          status = "",
          ...end
        } = await connection.client.send(command, { abortSignal: signal }).catch((error: unknown) => {
          throw discreet(attempts.error ?? error);
        });
        const state = executions.end({ executionArn, status, ...end });
        return { ref: { executionArn }, state, ...(state.url !== undefined && { url: state.url }) };
      },

      async read() {
        const message = "An Express execution cannot be read: its outcome came with its start or is lost.";
        throw new EngineError({ kind: "gone", code: "StateMachineTypeNotSupported", message });
      },
    };
  }

  let isChecked = false;
  /** Best effort and once: a role may lack the right, and a start need not wait for a throttled check. */
  async function checkType(signal: AbortSignal): Promise<void> {
    if (isChecked) return;
    const command = new DescribeStateMachineCommand({
      stateMachineArn: baseMachineArn(machine),
      includedData: "METADATA_ONLY",
    });
    const described = await connection.client.send(command, { abortSignal: signal }).catch(() => undefined);
    if (described?.type === "EXPRESS") {
      const message = `${machine.machine} is an Express state machine: give its adapter type: "EXPRESS".`;
      throw new EngineError({ kind: "rejected", code: "StateMachineTypeNotSupported", message });
    }
    isChecked = described !== undefined;
  }

  async function started(executionArn: string, signal?: AbortSignal): Promise<StartedRun> {
    const url = executionUrl(executionArn);
    const run = { ref: { executionArn }, ...(url !== undefined && { url }) };
    if (signal === undefined) return run;
    const state = await executions.stateOf(await executions.describe(executionArn, signal), signal);
    return { ...run, state, ref: state.ref ?? run.ref };
  }

  async function start({ key, input, signal }: StartRequest): Promise<StartedRun> {
    const text = checkedJson(input, "input");
    await checkType(signal);
    const name = namePrefix + key;
    const command = new StartExecutionCommand({ stateMachineArn, name, input: text });
    const attempts = watchAttempts(command, { retries: true });
    try {
      const { executionArn = "" } = await connection.client.send(command, { abortSignal: signal });
      return executionArn.includes(":express:") ? unfollowable(executionArn) : await started(executionArn);
    } catch (error) {
      // The name is this task's alone: an execution that has it is ours, of a start whose response was lost.
      if (errorCode(error) === "ExecutionAlreadyExists") {
        const executionArn = executionArnOf(machine, name);
        return started(executionArn, signal).catch(() => started(executionArn));
      }
      if (!attempts.lost) throw discreet(error);
      const message = "A start of the execution got no response, and the next one did not go through.";
      throw new EngineError({ kind: "ambiguous", code: errorCode(error), message }, error);
    }
  }

  return {
    ...common,
    startsOnce: true,
    appearsWithinMs,
    start,

    async find({ key, lastStartedAtMs, signal }) {
      try {
        return await started(executionArnOf(machine, namePrefix + key), signal);
      } catch (error) {
        if (errorCode(error) !== "ExecutionDoesNotExist") throw error;
        if (Date.now() - lastStartedAtMs > appearsWithinMs) return undefined;
        const message = "The execution cannot be seen yet.";
        throw new EngineError({ kind: "retry", code: "ExecutionDoesNotExist", message }, error);
      }
    },

    read: (ref, { signal, attempt }) => executions.read(asExecutionRef(ref), signal, attempt),
    stop: (ref, { signal }) => executions.stop(asExecutionRef(ref), signal),
    answer: (ref, key, answer, { signal }) => executions.answer(asExecutionRef(ref), key, answer, signal),
    ...(push !== undefined && {
      events: async (request) =>
        executionsIn(request, push)
          .filter((executionArn) => isRunOf(parseExecutionArn(executionArn), machine))
          .map((executionArn) => ({ executionArn })),
    }),
  };
}

/** StartExecution also takes Express machines, and then nobody can say what became of it. */
function unfollowable(executionArn: string): StartedRun {
  const message =
    'The machine is an Express one, so this execution cannot be followed: give its adapter type: "EXPRESS".';
  const failure = { code: "StateMachineTypeNotSupported", message };
  return { ref: { executionArn }, state: { native: "EXPRESS", status: "unknown", failure } };
}
