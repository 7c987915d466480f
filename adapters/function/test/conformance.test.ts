import { EventEmitter, once } from "node:events";
import type { JsonObject, RunFailure } from "@taskferry/core";
import { type Drive, type DrivenRun, type ReceivedAnswer, testAdapter } from "@taskferry/testkit";
import { asyncFunction, type FunctionContext, FunctionRuns } from "../src/index.js";

/** A function that does as it is told from outside, by events under its run's key. */
class Puppets {
  readonly runs = new FunctionRuns();
  readonly started = new Map<
    string,
    { input: JsonObject; context: FunctionContext; answers: ReceivedAnswer[] }
  >();
  readonly deaf = new Set<string>();
  readonly strings = new EventEmitter().setMaxListeners(0);

  /** The workflow. */
  readonly play = async (input: JsonObject, context: FunctionContext): Promise<unknown> => {
    const { key, signal } = context;
    this.started.set(key, { input, context, answers: [] });
    signal.addEventListener("abort", () => {
      if (!this.deaf.has(key)) this.strings.emit(key, { error: signal.reason });
    });
    const [end] = (await once(this.strings, key)) as [{ value?: unknown; error?: unknown }];
    if ("error" in end) throw end.error;
    return end.value;
  };

  of({ key }: DrivenRun) {
    return this.started.get(key) ?? Promise.reject(new Error("not started"));
  }
}

const drive: Drive<Puppets> = {
  runs: (puppets) => puppets.started.size,
  inputOf: async (puppets, run) => (await puppets.of(run)).input,
  finish: (puppets, { key }, value) => void puppets.strings.emit(key, { value }),
  fail: (puppets, { key }, { code, message }: RunFailure) => {
    puppets.strings.emit(key, { error: Object.assign(new Error(message), { name: code }) });
  },
  progress: async (puppets, run, done, total) => (await puppets.of(run)).context.progress(done, total),
  log: async (puppets, run, line) => (await puppets.of(run)).context.log(line),
  deferStop: (puppets, { key }) => void puppets.deaf.add(key),
  ask: async (puppets, run) => {
    const { context, answers } = await puppets.of(run);
    const schema = { type: "object", properties: { where: { type: "string" } } };
    // Rejects when the run is stopped, which the puppet hears of in another way.
    const asked = context.ask({ message: "Where to?", schema }).then(({ action, content }) => {
      answers.push({ accepted: action === "accept", ...(content && { content }) });
    });
    asked.catch(() => undefined);
  },
  answers: async (puppets, run) => (await puppets.of(run)).answers,
};

const NO_NETWORK = "A call in the process has no network that could fail.";

testAdapter({
  create: () => {
    const puppets = new Puppets();
    return { engine: puppets, connect: () => asyncFunction(puppets.play, { runs: puppets.runs }) };
  },
  drive,
  skip: [
    { drive: "throttle", reason: NO_NETWORK },
    { drive: "disconnect", reason: NO_NETWORK },
    { drive: "hang", reason: NO_NETWORK },
    { drive: "loseStartResponse", reason: NO_NETWORK },
    { drive: "omitStartId", reason: NO_NETWORK },
    { drive: "secrets", reason: "There are no credentials." },
    { drive: "reject", reason: "A function is always there to be called; what it throws ends the run." },
    { drive: "maxInputBytes", reason: "Memory is the only limit." },
    { drive: "queue", reason: "A function begins at once." },
    { drive: "unknownWord", reason: "The states are this package's own: a closed type." },
    { drive: "vanish", reason: "A run cannot be deleted while it goes on." },
    { drive: "revive", reason: "A function that has ended does not begin again." },
    { drive: "withdraw", reason: "Nobody else can close a question; a stop ends the run with it." },
  ],
});
