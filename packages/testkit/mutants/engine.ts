import { createHmac, randomUUID } from "node:crypto";
import type { Json, JsonObject } from "@taskferry/core";

/** A native run of the scripted engine. */
export interface NativeRun {
  readonly id: string;
  readonly key: string;
  readonly input: string;
  word: string;
  attempt: number;
  value?: string;
  error?: { readonly code: string; readonly message: string };
  progress?: { readonly done: number; readonly total: number };
  ignoresStop: boolean;
  readonly log: string[];
  readonly questions: { readonly token: string; isOpen: boolean }[];
  readonly answers: { readonly accepted: boolean; readonly content: JsonObject }[];
}

/** What the scripted engine's client throws. */
export class NativeError extends Error {
  override readonly name = "NativeError";

  constructor(
    readonly code: string,
    readonly details: { readonly retryAfterSeconds?: number; readonly body?: string } = {},
  ) {
    super(`The engine answered ${code}`);
  }
}

/** How calls to the engine go. */
export type Weather = "fair" | "hanging" | "broken" | { readonly retryAfterSeconds: number };

const ENDED = ["DONE", "BROKEN", "STOPPED"];

/** A workflow engine in memory that does as it is told: every native situation that the kit knows can be forced. */
export class ScriptedEngine {
  static readonly maxInputBytes = 64 * 1024;
  readonly token = `token-${randomUUID()}`;

  constructor(readonly runs = new Map<string, NativeRun>()) {}

  weather: Weather = "fair";
  refusesStarts = false;
  queues = false;
  losesNextResponse = false;
  omitsIds = false;

  /** The network: every call of the client goes through here. */
  async call<Value>(token: string, signal: AbortSignal, operation: () => Value): Promise<Value> {
    signal.throwIfAborted();
    if (token !== this.token) throw new NativeError("Unauthorized");
    if (this.weather === "broken") throw new NativeError("ECONNRESET");
    if (this.weather === "hanging") await untilAborted(signal);
    if (typeof this.weather === "object") throw new NativeError("Throttled", this.weather);
    await new Promise((resolve) => setImmediate(resolve));
    return operation();
  }

  /** Starts a run, or answers the one that this key started. */
  start(key: string, input: Json): { readonly id?: string } {
    const text = JSON.stringify(input);
    if (this.refusesStarts) throw new NativeError("Refused", { body: `cannot start with ${text}` });
    if (Buffer.byteLength(text) > ScriptedEngine.maxInputBytes) throw new NativeError("InputTooLarge");
    const run = this.byKey(key) ?? this.#create(key, text);
    if (this.losesNextResponse) {
      this.losesNextResponse = false;
      throw new NativeError("ETIMEDOUT");
    }
    return this.omitsIds ? {} : { id: run.id };
  }

  get(id: string): NativeRun {
    const run = this.runs.get(id);
    if (run === undefined) throw new NativeError("NoSuchRun");
    return run;
  }

  byKey(key: string): NativeRun | undefined {
    return [...this.runs.values()].find((run) => run.key === key);
  }

  stop(id: string): void {
    const run = this.get(id);
    if (!hasEnded(run) && !run.ignoresStop) this.end(run, "STOPPED");
  }

  answer(id: string, token: string, accepted: boolean, content: JsonObject): void {
    const run = this.get(id);
    const question = run.questions.find((asked) => asked.token === token && asked.isOpen);
    if (question === undefined) throw new NativeError("NoSuchQuestion", { body: JSON.stringify(content) });
    question.isOpen = false;
    run.answers.push({ accepted, content });
    if (run.questions.every((asked) => !asked.isOpen)) run.word = "RUNNING";
  }

  end(run: NativeRun, word: string, outcome: Pick<NativeRun, "value" | "error"> = {}): void {
    if (hasEnded(run)) return;
    Object.assign(run, { word, ...outcome });
  }

  sign(body: string | Uint8Array): string {
    return createHmac("sha256", this.token).update(body).digest("hex");
  }

  #create(key: string, input: string): NativeRun {
    const run: NativeRun = {
      id: `run-${randomUUID()}`,
      key,
      input,
      word: this.queues ? "QUEUED" : "RUNNING",
      attempt: 1,
      ignoresStop: false,
      log: [],
      questions: [],
      answers: [],
    };
    this.runs.set(run.id, run);
    return run;
  }
}

/** Whether a native run has ended. */
export function hasEnded(run: NativeRun): boolean {
  return ENDED.includes(run.word);
}

function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
