import { checkOptions, EngineError, type RunRef, type RunState, type WorkflowAdapter } from "@taskferry/core";
import { isAlive, type ProcessIdentity } from "./process-identity.js";
import { type FunctionRun, FunctionRuns, type WorkflowFunction } from "./runs.js";
import { RUN_STATUS } from "./status.js";

export type { ProcessIdentity } from "./process-identity.js";
export type { Answered, Ask, FormSchema } from "./question.js";
export {
  CallRefused,
  type FunctionContext,
  FunctionRun,
  FunctionRuns,
  type WorkflowFunction,
} from "./runs.js";
export { type FunctionState, RUN_STATUS } from "./status.js";

/** Options of {@link asyncFunction}. */
export interface AsyncFunctionOptions {
  /** The engine's name in rows, logs and metrics. @default "function" */
  readonly engine?: string;
  /** Where the runs live. @default one for the whole process */
  readonly runs?: FunctionRuns;
}

/** What a run is called outside of its process. */
interface FunctionRef {
  readonly process: ProcessIdentity;
  readonly key: string;
}

const processRuns = new FunctionRuns();

const PROCESS_ENDED = {
  code: "ProcessEnded",
  message: "The process that ran this function has ended. How far the function came is not known.",
};

/**
 * Makes an async function a workflow. It runs in this process and ends with it: a task whose process has
 * died ends as `failed` with the code `ProcessEnded`, and is never run a second time.
 *
 * @example
 * asyncFunction(async ({ city }: { city: string }, { ask, progress, signal }) => {
 *   progress(0, 2, `Measuring ${city}`);
 *   const report = await measure(city, { signal });
 *   const answer = await ask({ message: "Publish?", schema: z.object({ title: z.string() }) });
 *   return answer.action === "accept" ? publish(report, answer.content.title) : report;
 * })
 */
export function asyncFunction<Input>(
  fn: WorkflowFunction<Input>,
  options: AsyncFunctionOptions = {},
): WorkflowAdapter {
  checkOptions("asyncFunction", options, { engine: true, runs: true });
  const { engine = "function", runs = processRuns } = options;
  return {
    engine,
    startsOnce: true,

    async start({ key, input, retry, signal }) {
      signal.throwIfAborted();
      // An earlier process may have run the function half-way. Only its author knows whether twice is safe.
      if (retry && runs.get(key) === undefined) throw new EngineError({ kind: "rejected", ...PROCESS_ENDED });
      if (runs.get(key) === undefined) runs.start(key, fn, input as Input);
      return { ref: { process: { ...runs.identity }, key } };
    },

    async read(ref, { signal }) {
      signal.throwIfAborted();
      const { process, key } = asFunctionRef(ref);
      if (process.id === runs.identity.id) return stateOf(here(runs, key));
      // Its own process will tell: several servers share one database.
      if (isAlive(process)) return { native: "elsewhere", status: "unchanged" };
      return { native: "lost", status: RUN_STATUS.lost, failure: PROCESS_ENDED };
    },

    async stop(ref, { signal }) {
      signal.throwIfAborted();
      runHere(runs, ref).stop();
    },

    async answer(ref, questionKey, answer, { signal }) {
      signal.throwIfAborted();
      await runHere(runs, ref).answer(questionKey, answer);
    },

    async logs(ref, cursor, { signal }) {
      signal.throwIfAborted();
      const { log, ended } = runHere(runs, ref);
      // The cursor counts from the log's beginning, also when that has been dropped.
      const end = log.dropped + log.text.length;
      const text = log.text.slice(Math.max(0, Number(cursor ?? 0) - log.dropped));
      return ended ? { text } : { text, cursor: String(end) };
    },
  };
}

function stateOf(run: FunctionRun): RunState {
  const { state, message, progress, questions, output, failure } = run;
  if (run.ended) run.toldAt ??= Date.now();
  return {
    native: state,
    status: RUN_STATUS[state],
    ...(message !== undefined && { message }),
    ...(progress && { progress }),
    ...(state === "asking" && { questions }),
    ...(state === "returned" && { output: output === undefined ? {} : { value: output } }),
    ...(failure && { failure }),
  };
}

function runHere(runs: FunctionRuns, ref: RunRef): FunctionRun {
  const { process, key } = asFunctionRef(ref);
  if (process.id === runs.identity.id) return here(runs, key);
  if (!isAlive(process)) throw new EngineError({ kind: "gone", ...PROCESS_ENDED });
  throw new EngineError({
    kind: "retry",
    code: "OtherProcess",
    message: "The function runs in another process, which has to take this call.",
  });
}

function here(runs: FunctionRuns, key: string): FunctionRun {
  const run = runs.get(key);
  if (run === undefined) {
    throw new EngineError({ kind: "gone", code: "Forgotten", message: "The run ended and was forgotten." });
  }
  return run;
}

function asFunctionRef(ref: RunRef): FunctionRef {
  return ref as unknown as FunctionRef;
}
