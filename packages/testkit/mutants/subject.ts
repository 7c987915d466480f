import type { Json, JsonObject, WorkflowAdapter } from "@taskferry/core";
import type { Drive, DrivenRun, Subject } from "@taskferry/testkit";
import { idOf, type ScriptedAdapter, scripted } from "./adapter.js";
import { hasEnded, type NativeRun, ScriptedEngine } from "./engine.js";

/** A fresh scripted engine with the adapters that `mutate` makes of the right one. */
export function scriptedSubject(
  engine: ScriptedEngine,
  mutate: (adapter: ScriptedAdapter, engine: ScriptedEngine) => Partial<WorkflowAdapter> = () => ({}),
): Subject<ScriptedEngine> {
  return {
    engine,
    connect: () => {
      const right = scripted(engine);
      return { ...right, ...mutate(right, engine) };
    },
  };
}

/** Forces every situation. */
export const scriptedDrive: Required<Omit<Drive<ScriptedEngine>, "input">> = {
  runs: (engine) => engine.runs.size,
  inputOf: (engine, run) => JSON.parse(native(engine, run).input) as Json,
  maxInputBytes: () => ScriptedEngine.maxInputBytes,
  secrets: (engine) => [engine.token],

  finish: (engine, run, value) => engine.end(native(engine, run), "DONE", { value: JSON.stringify(value) }),
  fail: (engine, run, error) => engine.end(native(engine, run), "BROKEN", { error }),
  queue: (engine) => set(engine, { queues: true }),
  progress: (engine, run, done, total) => set(native(engine, run), { progress: { done, total } }),
  log: (engine, run, line) => void native(engine, run).log.push(line),
  unknownWord: (engine, run) => {
    set(native(engine, run), { word: "SIDEWAYS" });
    return "SIDEWAYS";
  },
  vanish: (engine, run) => void engine.runs.delete(native(engine, run).id),
  revive: (engine, run) => {
    const revived = native(engine, run);
    if (!hasEnded(revived)) throw new Error("Only what has ended can be revived.");
    revived.word = "RUNNING";
    revived.attempt++;
  },
  deferStop: (engine, run) => set(native(engine, run), { ignoresStop: true }),

  ask: (engine, run) => {
    const asking = native(engine, run);
    asking.word = "WAITING";
    asking.questions.push({ token: `question-${asking.questions.length + 1}`, isOpen: true });
  },
  withdraw: (engine, run) => {
    const asking = native(engine, run);
    for (const question of asking.questions) question.isOpen = false;
    asking.word = "RUNNING";
  },
  answers: (engine, run) => native(engine, run).answers,

  throttle: (engine, retryAfterMs) => set(engine, { weather: { retryAfterSeconds: retryAfterMs / 1000 } }),
  reject: (engine) => set(engine, { refusesStarts: true }),
  disconnect: (engine) => set(engine, { weather: "broken" }),
  hang: (engine) => set(engine, { weather: "hanging" }),
  loseStartResponse: (engine) => set(engine, { losesNextResponse: true }),
  omitStartId: (engine) => set(engine, { omitsIds: true }),

  event: (engine, run) => delivery(engine, { event: "run.ended", run: native(engine, run).id }),
  foreignEvent: (engine) => delivery(engine, { event: "invoice.paid" }),
};

function set<Target extends object>(target: Target, change: Partial<Target>): void {
  Object.assign(target, change);
}

function native(engine: ScriptedEngine, run: DrivenRun): NativeRun {
  return engine.get(idOf(run.ref) ?? "");
}

function delivery(engine: ScriptedEngine, event: JsonObject) {
  const body = JSON.stringify(event);
  return {
    headers: { "content-type": "application/json", "x-scripted-signature": engine.sign(body) },
    body: new TextEncoder().encode(body),
  };
}
