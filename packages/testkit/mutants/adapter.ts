import { timingSafeEqual } from "node:crypto";
import type { ErrorVerdict, Json, RunRef, RunState, RunStatus, WorkflowAdapter } from "@taskferry/core";
import { NativeError, type NativeRun, type ScriptedEngine } from "./engine.js";

const RUN_STATUS: Readonly<Record<string, RunStatus>> = {
  QUEUED: "submitted",
  RUNNING: "working",
  WAITING: "input_required",
  DONE: "completed",
  BROKEN: "completed",
  STOPPED: "cancelled",
};

const VERDICT: Readonly<Record<string, ErrorVerdict["kind"]>> = {
  Unauthorized: "rejected",
  Refused: "rejected",
  InputTooLarge: "rejected",
  Throttled: "retry",
  NoSuchRun: "gone",
  NoSuchQuestion: "gone",
};

/** An adapter with every optional method. */
export type ScriptedAdapter = WorkflowAdapter &
  Required<Pick<WorkflowAdapter, "stop" | "find" | "answer" | "events" | "logs" | "explain" | "close">>;

/** A run whose start did not name it. */
const UNNAMED = { unnamed: true };

/** A right adapter for the scripted engine, with every part of the contract. Mutants are made of it. */
export function scripted(engine: ScriptedEngine, token: string = engine.token): ScriptedAdapter {
  return {
    engine: "scripted",
    startsOnce: true,
    startTimeoutMs: 60_000,
    appearsWithinMs: 60_000,

    async start({ key, input, signal }) {
      const { id } = await engine.call(token, signal, () => engine.start(key, input));
      return id === undefined
        ? { ref: UNNAMED }
        : { ref: { id }, url: `https://scripted.example/runs/${id}` };
    },

    async read(ref, { signal, isClaimed }) {
      if (idOf(ref) !== undefined)
        return engine.call(token, signal, () => stateOf(engine.get(idOf(ref) ?? "")));
      for (const id of await engine.call(token, signal, () => [...engine.runs.keys()])) {
        if (!(await isClaimed(id))) return { native: "UNNAMED", status: "unchanged", ref: { id }, claim: id };
      }
      return { native: "UNNAMED", status: "unchanged" };
    },

    async stop(ref, { signal }) {
      await engine.call(token, signal, () => engine.stop(idOf(ref) ?? ""));
    },

    async find({ key, signal }) {
      const run = await engine.call(token, signal, () => engine.byKey(key));
      return run && { ref: { id: run.id } };
    },

    async answer(ref, questionKey, { action, content = {} }, { signal }) {
      const accepted = action === "accept";
      await engine.call(token, signal, () => engine.answer(idOf(ref) ?? "", questionKey, accepted, content));
    },

    async events({ headers, body }) {
      const signature = Buffer.from(headers["x-scripted-signature"] ?? "");
      const expected = Buffer.from(engine.sign(body));
      if (signature.length !== expected.length || !timingSafeEqual(signature, expected)) {
        throw new NativeError("Unauthorized");
      }
      return refsOf(body);
    },

    async logs(ref, cursor, { signal }) {
      const { log, word } = await engine.call(token, signal, () => engine.get(idOf(ref) ?? ""));
      const text = log.slice(Number(cursor ?? 0)).map((line) => `${line}\n`);
      const isComplete = RUN_STATUS[word] === "completed" || RUN_STATUS[word] === "cancelled";
      return isComplete ? { text: text.join("") } : { text: text.join(""), cursor: String(log.length) };
    },

    explain(error) {
      if (!(error instanceof NativeError)) return undefined;
      const kind = VERDICT[error.code];
      const { retryAfterSeconds } = error.details;
      if (kind === undefined) return { kind: "ambiguous", code: error.code };
      return { kind, code: error.code, ...(retryAfterSeconds && { retryAfterMs: retryAfterSeconds * 1000 }) };
    },

    async close() {},
  };
}

/** The runs that a delivery is about, once it is known to be authentic. */
export function refsOf(body: Uint8Array): RunRef[] {
  const { run } = JSON.parse(Buffer.from(body).toString("utf8")) as { run?: string };
  return run === undefined ? [] : [{ id: run }];
}

/** The native id in a ref. */
export function idOf(ref: RunRef): string | undefined {
  return (ref as { id?: string }).id;
}

function stateOf(run: NativeRun): RunState {
  const { word: native, attempt, progress, value, error } = run;
  const state: RunState = {
    native,
    attempt,
    status: RUN_STATUS[native] ?? "unchanged",
    ...(progress && { progress }),
  };
  if (native === "DONE") return { ...state, output: { value: JSON.parse(value ?? "null") as Json } };
  if (native === "BROKEN") return { ...state, failure: error ?? { code: "Broken", message: "Broken" } };
  if (native !== "WAITING") return state;
  const questions = run.questions
    .filter((question) => question.isOpen)
    .map(({ token }) => ({
      key: token,
      message: "What now?",
      schema: { type: "object", properties: { what: { type: "string" } } },
    }));
  return { ...state, questions };
}
