/** How each situation is forced on the engine. The kit tests what is here; what is not needs a skip with a reason. */
import type { Drive, DrivenRun, Subject } from "@taskferry/testkit";
import { myEngine } from "../src/index.js";
import { Engine, type Job } from "./engine.js";

/** A fresh engine that shares no jobs with any other, and how to connect to it. */
export async function create(): Promise<Subject<Engine>> {
  const engine = await Engine.listen();
  return {
    engine,
    connect: () => myEngine({ url: engine.url, token: engine.token }),
    close: () => engine.close(),
  };
}

export const drive: Drive<Engine> = {
  runs: (engine) => engine.jobs.size,
  inputOf: (engine, run) => jobOf(engine, run).input,
  secrets: (engine) => [engine.token],

  finish: (engine, run, value) => change(jobOf(engine, run), { state: "done", value, questions: [] }),
  fail: (engine, run, error) => change(jobOf(engine, run), { state: "failed", error, questions: [] }),
  queue: (engine) => change(engine, { queues: true }),
  progress: (engine, run, done, total) => change(jobOf(engine, run), { progress: { done, total } }),
  deferStop: (engine, run) => change(jobOf(engine, run), { ignoresStop: true }),
  vanish: (engine, run) => void engine.jobs.delete(jobOf(engine, run).id),
  unknownWord: (engine, run) => {
    change(jobOf(engine, run), { state: "hibernating" });
    return "hibernating";
  },

  ask: (engine, run) => {
    const job = jobOf(engine, run);
    const schema = { type: "object", properties: { where: { type: "string" } } };
    const question = { key: `where-${++engine.asked}`, message: "Where to?", schema };
    change(job, { state: "waiting", questions: [...job.questions, question] });
  },
  withdraw: (engine, run) => change(jobOf(engine, run), { state: "running", questions: [] }),
  answers: (engine, run) => jobOf(engine, run).answers,

  reject: (engine) => change(engine, { rejects: true }),
  throttle: (engine, retryAfterMs) => change(engine, { network: { retryAfterMs } }),
  disconnect: (engine) => change(engine, { network: "broken" }),
  hang: (engine) => change(engine, { network: "hanging" }),
  loseStartResponse: (engine) => change(engine, { losesNextStart: true }),
};

function jobOf(engine: Engine, { ref }: DrivenRun): Job {
  const job = engine.jobs.get((ref as { readonly id: string }).id);
  if (job === undefined) throw new Error("There is no such job");
  return job;
}

function change<Target extends object>(target: Target, to: Partial<Target>): void {
  Object.assign(target, to);
}
