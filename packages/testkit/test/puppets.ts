import { EventEmitter, once } from "node:events";
import { asyncFunction, type FunctionContext, FunctionRuns } from "@taskferry/function";
import type { Drive, DrivenRun, ReceivedAnswer, Subject } from "../src/index.js";

/** Functions that end when they are told to. */
export class Puppets {
  readonly runs = new FunctionRuns();
  readonly started = new Map<string, { context: FunctionContext; answers: ReceivedAnswer[] }>();
  readonly strings = new EventEmitter();

  readonly play = async (_input: unknown, context: FunctionContext): Promise<unknown> => {
    this.started.set(context.key, { context, answers: [] });
    const [end] = await once(this.strings, context.key, { signal: context.signal });
    if ("error" in end) throw end.error;
    return end.value;
  };

  of({ key }: DrivenRun) {
    return this.started.get(key) ?? Promise.reject(new Error("not started"));
  }
}

export function puppetSubject(): Subject<Puppets> {
  const puppets = new Puppets();
  return { engine: puppets, connect: () => asyncFunction(puppets.play, { runs: puppets.runs }) };
}

export const puppetDrive: Drive<Puppets> = {
  runs: (puppets) => puppets.started.size,
  finish: (puppets, { key }, value) => void puppets.strings.emit(key, { value }),
  fail: (puppets, { key }, { code, message }) => {
    puppets.strings.emit(key, { error: Object.assign(new Error(message), { name: code }) });
  },
  ask: async (puppets, run) => {
    const { context, answers } = await puppets.of(run);
    const schema = { type: "object", properties: { where: { type: "string" } } };
    const asked = context.ask({ message: "Where to?", schema }).then(({ action, content }) => {
      answers.push({ accepted: action === "accept", ...(content && { content }) });
    });
    asked.catch(() => undefined);
  },
  answers: async (puppets, run) => (await puppets.of(run)).answers,
};
