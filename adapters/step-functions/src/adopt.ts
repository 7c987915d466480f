import {
  checkOptions,
  EngineError,
  isJsonObject,
  type WorkflowAdapter,
  WorkflowError,
} from "@taskferry/core";
import { executionUrl, isRunOf, parseExecutionArn, parseMachineArn } from "./arn.js";
import { CONNECTION_OPTIONS, type ConnectionOptions, connect } from "./client.js";
import { asExecutionRef, EXECUTION_OPTIONS, type ExecutionOptions, Executions } from "./execution.js";
import { pacerOf } from "./pacing.js";

/** Options of {@link adoptExecutions}. */
export interface AdoptOptions extends ConnectionOptions, ExecutionOptions {
  /** The machines whose executions may be adopted, of one account and region. Others are refused unread. */
  readonly stateMachineArns: readonly string[];
  /** Whether cancelling the task stops the execution, which somebody else started. @default false */
  readonly stop?: boolean;
  /** @default "aws-step-functions" */
  readonly engine?: string;
}

const OPTIONS = {
  stateMachineArns: true,
  stop: true,
  engine: true,
  ...CONNECTION_OPTIONS,
  ...EXECUTION_OPTIONS,
} as const satisfies Readonly<Record<keyof AdoptOptions, true>>;

/**
 * An adapter that starts nothing: its input is `{ executionArn }`, and the task is about that execution.
 * Standard executions only.
 * @throws WorkflowError `configuration` if the machines are none or of several accounts or regions
 */
export function adoptExecutions(options: AdoptOptions): WorkflowAdapter {
  checkOptions("adoptExecutions", options, OPTIONS);
  const machines = options.stateMachineArns.map(parseMachineArn);
  const [first] = machines;
  if (first === undefined || machines.some(({ home }) => home !== first.home)) {
    throw new WorkflowError("configuration", "stateMachineArns must name machines of one account and region");
  }
  const connection = connect(options, first.region);
  const executions = new Executions(connection, pacerOf(first.home, options.readsPerSecond ?? 10), options);
  return {
    engine: options.engine ?? "aws-step-functions",
    startsOnce: true,
    ...(options.appearsWithinMs !== undefined && { appearsWithinMs: options.appearsWithinMs }),

    async start({ input, signal }) {
      const executionArn = isJsonObject(input) ? input.executionArn : undefined;
      const arn = parseExecutionArn(executionArn);
      if (typeof executionArn !== "string" || !machines.some((machine) => isRunOf(arn, machine))) {
        const message = "executionArn must name an execution of a state machine that this tool is for.";
        throw new EngineError({ kind: "rejected", code: "InvalidArn", message });
      }
      const state = await executions.stateOf(await executions.describe(executionArn, signal), signal);
      const url = executionUrl(executionArn);
      return { ref: state.ref ?? { executionArn }, state, ...(url !== undefined && { url }) };
    },

    read: (ref, { signal, attempt }) => executions.read(asExecutionRef(ref), signal, attempt),
    ...(options.stop === true && { stop: (ref, { signal }) => executions.stop(asExecutionRef(ref), signal) }),
    answer: (ref, key, answer, { signal }) => executions.answer(asExecutionRef(ref), key, answer, signal),
    explain: (error) => executions.explain(error),
    close: async () => executions.close(),
  };
}
