import {
  DescribeExecutionCommand,
  type DescribeExecutionOutput,
  type HistoryEvent,
  SendTaskFailureCommand,
  SendTaskHeartbeatCommand,
  SendTaskSuccessCommand,
  StopExecutionCommand,
} from "@aws-sdk/client-sfn";
import {
  type Answer,
  canonicalJson,
  EngineError,
  isJsonObject,
  type Json,
  type Question,
  type RunRef,
  type RunState,
  type WorkflowAdapter,
} from "@taskferry/core";
import { type ActivityOptions, ActivityTasks, activityKey, type HeldTask } from "./activity.js";
import { executionUrl, parseExecutionArn } from "./arn.js";
import type { Connection } from "./client.js";
import { discreet, errorCode, explainSfn, isThrottle } from "./errors.js";
import { Heartbeats } from "./heartbeats.js";
import { History, readHistory } from "./history.js";
import { type ExecutionEnd, failureOf, outputOf, parseJson } from "./outcome.js";
import type { Pacer } from "./pacing.js";
import { type Asked, findAsked, makeQuestion, type QuestionOptions } from "./question.js";
import { runStatus } from "./status.js";

/** Options about reading executions. */
export interface ExecutionOptions {
  /** How waiting states become questions; `false`: they do not. */
  readonly questions?: QuestionOptions | false;
  /** An activity whose tasks become questions. */
  readonly activity?: ActivityOptions;
  /**
   * How many of the newest history events are read for the current states and pending questions; 0: none, which saves
   * a request per read and `states:GetExecutionHistory`. More than 1000 takes a request for each 1000.
   * @default 1000
   */
  readonly historyEvents?: number;
  /** Longest text of a result, in characters; the structured content is always whole. @default 8000 */
  readonly textLimit?: number;
  /** DescribeExecution calls per second and account that this process allows itself. @default 10 */
  readonly readsPerSecond?: number;
  /** How long after its start an execution that cannot be found is "not there yet", in milliseconds. @default 60000 */
  readonly appearsWithinMs?: number;
}

/** For `checkOptions`. */
export const EXECUTION_OPTIONS = {
  questions: true,
  activity: true,
  historyEvents: true,
  textLimit: true,
  readsPerSecond: true,
  appearsWithinMs: true,
} as const satisfies Readonly<Record<keyof ExecutionOptions, true>>;

/** What is stored of a run. */
export interface ExecutionRef {
  readonly executionArn: string;
  /** Activity tasks that were taken for it. */
  readonly activityTasks?: readonly HeldTask[];
}

/** How long SUCCEEDED may come without an output, in milliseconds. Describe is eventually consistent. */
const OUTPUT_GRACE_MS = 60_000;
const MAX_BYTES = 262_144;
const ASKED_LIMIT = 1000;
const CLOSED_TOKENS = new Set(["InvalidToken", "TaskDoesNotExist", "TaskTimedOut"]);

/** Reads, stops and answers executions, whoever started them. */
export class Executions {
  readonly #heartbeats: Heartbeats;
  readonly #activity: ActivityTasks | undefined;
  readonly #limit: number;
  /** By execution and event. Only saves requests: a new process reads them again. */
  readonly #asked = new Map<string, Asked | undefined>();

  constructor(
    private readonly connection: Connection,
    private readonly pacer: Pacer,
    private readonly options: ExecutionOptions,
  ) {
    this.#limit = options.historyEvents ?? 1000;
    this.#heartbeats = new Heartbeats((token) => this.#heartbeat(token));
    if (options.activity !== undefined) {
      const texts = options.questions || {};
      this.#activity = new ActivityTasks(options.activity, texts, () => connection.client, this.#heartbeats);
    }
  }

  async read(ref: ExecutionRef, signal: AbortSignal, attempt?: number): Promise<RunState> {
    const execution = await this.describe(ref.executionArn, signal);
    const { redriveCount = 0 } = execution;
    return attempt !== undefined && redriveCount > attempt
      ? this.#earlierAttempt(ref, attempt, signal)
      : this.#state(ref, execution, signal);
  }

  describe(executionArn: string, signal: AbortSignal): Promise<DescribeExecutionOutput> {
    return this.#paced(() =>
      this.connection.client.send(new DescribeExecutionCommand({ executionArn }), { abortSignal: signal }),
    );
  }

  /** The state of an execution that has been described. */
  async stateOf(execution: DescribeExecutionOutput, signal: AbortSignal): Promise<RunState> {
    return this.#state({ executionArn: execution.executionArn ?? "" }, execution, signal);
  }

  /** The end of an execution in the words of core. */
  end(end: ExecutionEnd): RunState {
    const url = executionUrl(end.executionArn);
    const status = runStatus(end.status);
    const state = { native: end.status, status, ...(url !== undefined && { url }) };
    if (status === "cancelled") return { ...state, message: end.cause ? `Stopped: ${end.cause}` : "Stopped" };
    return end.status === "SUCCEEDED"
      ? { ...state, output: outputOf(end.output, this.options.textLimit ?? 8000, url) }
      : { ...state, failure: failureOf(end) };
  }

  async stop({ executionArn }: ExecutionRef, signal: AbortSignal): Promise<void> {
    try {
      // Without error and cause: they would need KMS rights on an encrypted machine.
      await this.connection.client.send(new StopExecutionCommand({ executionArn }), { abortSignal: signal });
    } catch (error) {
      if (errorCode(error) !== "ValidationException") throw error;
      const { status = "" } = await this.describe(executionArn, signal);
      if (runStatus(status) === "working") throw error;
    }
  }

  async answer(ref: ExecutionRef, key: string, answer: Answer, signal: AbortSignal): Promise<void> {
    const held = ref.activityTasks?.find((task) => activityKey(task) === key);
    if (held !== undefined) return this.#send(held.token, answer, this.#output(answer, "", null), signal);
    const id = Number(/^event-(\d+)$/.exec(key)?.[1]);
    const history = () =>
      readHistory(this.connection.client, ref.executionArn, { limit: 25_000, data: true, upTo: id, signal });
    const before = Number.isNaN(id) ? undefined : await history();
    const event = before?.events.find((candidate) => candidate.id === id);
    const parameters = parametersOf(event);
    const asked = findAsked(parameters, this.options.questions || {});
    if (before === undefined || event === undefined || asked === undefined) {
      throw new EngineError({ kind: "gone", code: "NotAsked", message: "This question is not known." });
    }
    const output = this.#output(answer, before.stateOf(event) ?? "", parameters);
    // The response to an earlier delivery may have been lost, here or in another process.
    if (isAnsweredBy(before.closingEvent(id), answer, output)) return;
    try {
      await this.#send(asked.token, answer, output, signal);
    } catch (error) {
      // The same within this one: the SDK's second attempt hears that the first one has closed the token.
      if (!CLOSED_TOKENS.has(errorCode(error))) throw error;
      if (!isAnsweredBy((await history()).closingEvent(id), answer, output)) throw error;
    }
  }

  close(): void {
    this.#heartbeats.close();
    this.#activity?.close();
    this.connection.close();
  }

  async #state(
    ref: ExecutionRef,
    execution: DescribeExecutionOutput,
    signal: AbortSignal,
  ): Promise<RunState> {
    const { executionArn } = ref;
    const native = execution.status ?? "";
    const status = runStatus(native);
    const url = executionUrl(executionArn);
    const common = { attempt: execution.redriveCount ?? 0, ...(url !== undefined && { url }) };
    if (status === "unchanged")
      return { ...common, native, status, nextReadMs: this.pacer.running(executionArn) };
    if (status === "working") {
      const nextReadMs = this.pacer.running(executionArn);
      return { ...common, native, status, nextReadMs, ...(await this.#progress(ref, signal)) };
    }
    const { output, outputDetails, stopDate } = execution;
    const mayStillCome =
      outputDetails?.included !== false && Date.now() - (stopDate?.getTime() ?? 0) < OUTPUT_GRACE_MS;
    if (native === "SUCCEEDED" && output === undefined && mayStillCome) {
      return { ...common, native, status: "working", message: "Finished; its output is not there yet" };
    }
    this.pacer.ended(executionArn);
    const failed = status === "completed" && native !== "SUCCEEDED";
    const state = failed ? (await this.#history(executionArn, signal))?.failedState : undefined;
    const { error, cause } = execution;
    return { ...common, ...this.end({ status: native, output, error, cause, executionArn, state }) };
  }

  /** What a running execution does and asks. */
  async #progress(ref: ExecutionRef, signal: AbortSignal): Promise<Partial<RunState>> {
    const history = await this.#history(ref.executionArn, signal);
    if (history === undefined) return {};
    const message = messageOf(history.currentStates);
    const callbacks = await this.#callbacks(ref.executionArn, history, signal);
    const { held, ref: better } = await this.#activities(ref, history);
    const questions = [...callbacks, ...held];
    const progress = history.mapProgress;
    return {
      ...(message !== undefined && { message }),
      ...(progress !== undefined && { progress }),
      ...(questions.length > 0 && { status: "input_required", questions }),
      ...(better !== undefined && { ref: better }),
    };
  }

  /** States that wait for a task token that is in their own parameters. */
  async #callbacks(executionArn: string, history: History, signal: AbortSignal): Promise<Question[]> {
    const { questions: options = {} } = this.options;
    if (options === false) return [];
    const pending = history.pendingTasks.filter(
      ({ resource, state }) =>
        resource.endsWith(".waitForTaskToken") && (options.states?.includes(state) ?? true),
    );
    const machine = parseExecutionArn(executionArn)?.machine ?? "";
    const asked = await Promise.all(
      pending.map(async ({ event, state, heartbeatSeconds }) => {
        const found = await this.#askedBy(executionArn, event, options, signal);
        if (found === undefined) return [];
        if (heartbeatSeconds !== undefined && !(await this.#heartbeats.keep(found.token, heartbeatSeconds))) {
          return [];
        }
        return [makeQuestion(`event-${event.id}`, machine, state, found)];
      }),
    );
    return asked.flat();
  }

  /** What a pending event asks. An event never changes, so its data, which costs another request, is read once. */
  async #askedBy(
    executionArn: string,
    event: HistoryEvent,
    options: QuestionOptions,
    signal: AbortSignal,
  ): Promise<Asked | undefined> {
    const key = `${executionArn} ${event.id}`;
    if (this.#asked.has(key)) return this.#asked.get(key);
    const found = findAsked(await this.#parameters(executionArn, event, signal), options);
    const [oldest] = this.#asked.keys();
    if (this.#asked.size >= ASKED_LIMIT && oldest !== undefined) this.#asked.delete(oldest);
    this.#asked.set(key, found);
    return found;
  }

  async #parameters(executionArn: string, event: HistoryEvent, signal: AbortSignal): Promise<Json> {
    // Some engines tell the parameters whether or not data was asked for.
    if (event.taskScheduledEventDetails?.parameters !== undefined) return parametersOf(event);
    const upTo = event.id ?? 0;
    const options = { limit: this.#limit, data: true, upTo, signal };
    const history = await readHistory(this.connection.client, executionArn, options);
    return parametersOf(history.events.find(({ id }) => id === upTo));
  }

  /** Tasks of the activity. What was taken goes into the ref, because it is never given a second time. */
  async #activities(ref: ExecutionRef, history: History): Promise<{ held: Question[]; ref?: RunRef }> {
    const activity = this.#activity;
    if (activity === undefined) return { held: [] };
    const { activityTasks: stored = [], executionArn } = ref;
    const pending = history.pendingTasks.filter(({ resource }) => resource === activity.options.activityArn);
    let tasks = await activity.open(executionArn, stored, pending[0]?.heartbeatSeconds);
    if (tasks.length < pending.length) {
      await activity.take(1000);
      tasks = await activity.open(
        executionArn,
        tasks.filter((task) => stored.includes(task)),
        pending[0]?.heartbeatSeconds,
      );
    }
    const machine = parseExecutionArn(executionArn)?.machine ?? "";
    const held = tasks.map((task) => {
      const text = { message: task.message ?? undefined, schema: task.schema ?? undefined };
      return makeQuestion(activityKey(task), machine, pending[0]?.state ?? "", text);
    });
    const isStored = tasks.length === stored.length && tasks.every((task) => stored.includes(task));
    if (isStored) return { held };
    return { held, ref: tasks.length === 0 ? { executionArn } : { executionArn, activityTasks: tasks } };
  }

  /** The task is about one attempt; the execution was redriven and is at a later one. */
  async #earlierAttempt(
    { executionArn }: ExecutionRef,
    attempt: number,
    signal: AbortSignal,
  ): Promise<RunState> {
    const history = await this.#history(executionArn, signal);
    const redriven = history?.events.findIndex(
      ({ executionRedrivenEventDetails: details }) => details?.redriveCount === attempt + 1,
    );
    const before = new History(history?.events.slice(0, redriven === -1 ? 0 : redriven) ?? []);
    const end = before.events.findLast(({ type }) => /^Execution(Failed|TimedOut|Aborted)$/.test(type ?? ""));
    if (end === undefined) {
      const message =
        "This attempt ended, the execution was redriven, and its history does not tell the end any more.";
      return { native: "REDRIVEN", status: "unknown", attempt, failure: { code: "Redriven", message } };
    }
    const { error, cause } =
      end.executionFailedEventDetails ??
      end.executionTimedOutEventDetails ??
      end.executionAbortedEventDetails ??
      {};
    const status =
      { ExecutionTimedOut: "TIMED_OUT", ExecutionAborted: "ABORTED" }[end.type as string] ?? "FAILED";
    return { attempt, ...this.end({ status, error, cause, executionArn, state: before.failedState }) };
  }

  /** `undefined` when it is switched off or this role may not read it: the run's end is told all the same. */
  async #history(executionArn: string, signal: AbortSignal): Promise<History | undefined> {
    if (this.#limit === 0) return undefined;
    try {
      return await this.#paced(() =>
        readHistory(this.connection.client, executionArn, { limit: this.#limit, signal }),
      );
    } catch (error) {
      if (errorCode(error) === "AccessDeniedException") return undefined;
      throw error;
    }
  }

  #output(answer: Answer, state: string, parameters: Json): string {
    const { toOutput } = this.options.questions || {};
    return checkedJson(toOutput?.(answer, { state, parameters }) ?? answer.content ?? {}, "answer");
  }

  async #send(taskToken: string, answer: Answer, output: string, signal: AbortSignal): Promise<void> {
    const command =
      answer.action === "accept"
        ? new SendTaskSuccessCommand({ taskToken, output })
        : new SendTaskFailureCommand({
            taskToken,
            error: refusalOf(answer),
            cause: "The client did not accept.",
          });
    const options = { abortSignal: signal };
    await this.connection.client.send(command as SendTaskSuccessCommand, options).catch((error: unknown) => {
      throw discreet(error);
    });
    this.#heartbeats.release(taskToken);
  }

  /** Whether the token is open. */
  async #heartbeat(taskToken: string): Promise<boolean> {
    try {
      await this.connection.client.send(new SendTaskHeartbeatCommand({ taskToken }));
      return true;
    } catch (error) {
      if (CLOSED_TOKENS.has(errorCode(error))) return false;
      // Without the right to beat, the question can still be asked until it times out.
      if (errorCode(error) === "AccessDeniedException") return true;
      throw error;
    }
  }

  async #paced<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } catch (error) {
      if (isThrottle(error)) this.pacer.throttled();
      throw error;
    }
  }

  explain(error: unknown): ReturnType<NonNullable<WorkflowAdapter["explain"]>> {
    const verdict = explainSfn(error);
    return isThrottle(error) ? { ...verdict, retryAfterMs: Math.max(1000, this.pacer.intervalMs) } : verdict;
  }
}

/** Canonical, so that a retry sends the same bytes. @throws EngineError `rejected` over the limit of 262,144 bytes */
export function checkedJson(value: Json, what: string): string {
  const text = canonicalJson(value) as string | undefined;
  if (text !== undefined && Buffer.byteLength(text) <= MAX_BYTES) return text;
  const message =
    text === undefined
      ? `The ${what} is not JSON.`
      : `The ${what} has ${Buffer.byteLength(text)} bytes of JSON; Step Functions takes ${MAX_BYTES}.`;
  throw new EngineError({ kind: "rejected", code: "States.DataLimitExceeded", message });
}

export function asExecutionRef(ref: RunRef): ExecutionRef {
  if (isJsonObject(ref) && parseExecutionArn(ref.executionArn) !== undefined)
    return ref as unknown as ExecutionRef;
  throw new EngineError({
    kind: "gone",
    code: "InvalidRef",
    message: "What was stored of this run names no execution.",
  });
}

function messageOf(states: readonly string[]): string | undefined {
  const counts = new Map<string, number>();
  for (const state of states) counts.set(state, (counts.get(state) ?? 0) + 1);
  const names = [...counts].map(([state, count]) => (count === 1 ? state : `${state} ×${count}`));
  if (names.length === 0) return undefined;
  const more = names.length > 5 ? ` and ${names.length - 5} more` : "";
  return `In state${states.length === 1 ? "" : "s"} ${names.slice(0, 5).join(", ")}${more}`;
}

function parametersOf(event: HistoryEvent | undefined): Json {
  return parseJson(event?.taskScheduledEventDetails?.parameters ?? "null");
}

function refusalOf({ action }: Answer): string {
  return action === "decline" ? "Declined" : "Cancelled";
}

function isAnsweredBy(closing: HistoryEvent | undefined, answer: Answer, output: string): boolean {
  if (closing === undefined) return false;
  if (answer.action !== "accept") return closing.taskFailedEventDetails?.error === refusalOf(answer);
  const given = closing.taskSucceededEventDetails?.output;
  return given !== undefined && canonicalJson(parseJson(given)) === output;
}
