import {
  type Answer,
  EngineError,
  type Json,
  type Question,
  type RunFailure,
  type RunProgress,
} from "@taskferry/core";
import { type ProcessIdentity, thisProcess } from "./process-identity.js";
import { type Answered, type Ask, toAnswered, toQuestion } from "./question.js";
import type { FunctionState } from "./status.js";

/** What a function is given beside its input. */
export interface FunctionContext {
  /** The task's start key: the same for as long as this task lives, and never another's. */
  readonly key: string;
  /** Aborted when the task is cancelled. Pass it on to whatever takes a signal. */
  readonly signal: AbortSignal;
  /** Asks the client and waits for the answer. Rejects with the abort when the task is cancelled meanwhile. */
  ask<Content = Record<string, Json>>(question: Ask<Content>): Promise<Answered<Content>>;
  /** Tells how far the work is. Overwrites what was told before. */
  progress(done: number, total?: number, message?: string): void;
  /** Adds a line to the run's log. */
  log(line: string): void;
}

/** The work: an async function from JSON to JSON. */
export type WorkflowFunction<Input> = (input: Input, context: FunctionContext) => unknown;

/** Thrown by a function to say that the call could not be carried out at all: the task fails. */
export class CallRefused extends Error {
  override readonly name = "CallRefused";
}

interface Pending {
  readonly question: Question;
  readonly ask: Ask<unknown>;
  readonly resolve: (answered: Answered<unknown>) => void;
}

/** How much of each log is kept at most, in characters. The beginning goes first. */
const LOG_LIMIT = 512 * 1024;

/** One function at work, or its end. */
export class FunctionRun {
  state: FunctionState = "running";
  output: Json | undefined;
  failure: RunFailure | undefined;
  progress: RunProgress | undefined;
  message: string | undefined;
  /** When a read first told the end, in epoch milliseconds. */
  toldAt: number | undefined;
  readonly log = { text: "", dropped: 0 };
  readonly #abort = new AbortController();
  readonly #pending = new Map<string, Pending>();
  #asked = 0;

  constructor(readonly key: string) {}

  get questions(): readonly Question[] {
    return [...this.#pending.values()].map((pending) => pending.question);
  }

  get ended(): boolean {
    return this.state !== "running" && this.state !== "asking";
  }

  /** Calls the function and waits for its end. Never rejects. */
  async execute<Input>(fn: WorkflowFunction<Input>, input: Input): Promise<void> {
    try {
      const returned = await fn(input, this.#context());
      // What core will store, and so what is told: a value that is not JSON must fail here, not in the store.
      const text = returned === undefined ? undefined : JSON.stringify(returned);
      this.output = text === undefined ? undefined : (JSON.parse(text) as Json);
      this.state = "returned";
    } catch (error) {
      this.state = this.#isAbort(error) ? "aborted" : error instanceof CallRefused ? "refused" : "threw";
      if (this.state !== "aborted") this.failure = toFailure(error);
    } finally {
      this.#pending.clear();
    }
  }

  stop(): void {
    this.#abort.abort();
  }

  async answer(questionKey: string, answer: Answer): Promise<void> {
    const pending = this.#pending.get(questionKey);
    const answered = pending && (await toAnswered(pending.ask, answer));
    if (answered !== undefined && "issues" in answered) {
      throw new EngineError({ kind: "rejected", code: "InvalidAnswer", message: answered.issues });
    }
    // Asked again after the wait above: an answer that came in between was first.
    if (pending === undefined || answered === undefined || !this.#pending.delete(questionKey)) {
      throw new EngineError({ kind: "gone", code: "NotAsked", message: "This question is no longer open." });
    }
    if (this.#pending.size === 0 && !this.ended) this.state = "running";
    pending.resolve(answered);
  }

  #context(): FunctionContext {
    return {
      key: this.key,
      signal: this.#abort.signal,
      ask: (question) => this.#ask(question),
      progress: (done, total, message) => {
        this.progress = total === undefined ? { done } : { done, total };
        this.message = message ?? this.message;
      },
      log: (line) => {
        this.log.text += `${line}\n`;
        // Seldom and by half, so that a chatty function does not copy the whole log with every line.
        if (this.log.text.length <= LOG_LIMIT) return;
        this.log.dropped += this.log.text.length - LOG_LIMIT / 2;
        this.log.text = this.log.text.slice(-LOG_LIMIT / 2);
      },
    };
  }

  #ask<Content>(ask: Ask<Content>): Promise<Answered<Content>> {
    const signal = this.#abort.signal;
    const key = `question-${++this.#asked}`;
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      if (this.ended) throw new Error("A function that has ended cannot ask.");
      const stopped = () => {
        this.#pending.delete(key);
        reject(signal.reason);
      };
      signal.addEventListener("abort", stopped, { once: true });
      this.#pending.set(key, {
        question: toQuestion(key, ask),
        ask: ask as Ask<unknown>,
        resolve: (answered) => {
          signal.removeEventListener("abort", stopped);
          resolve(answered as Answered<Content>);
        },
      });
      this.state = "asking";
    });
  }

  /** Cancelled is only what ended because it was told to: another error after a stop is that error. */
  #isAbort(error: unknown): boolean {
    if (!this.#abort.signal.aborted || !(error instanceof Error)) return false;
    return error === this.#abort.signal.reason || error.name === "AbortError";
  }
}

/** Name and message are the author's words for the client. The stack is not: it shows the server's inside. */
function toFailure(error: unknown): RunFailure {
  return error instanceof Error
    ? { code: error.name, message: error.message || error.name }
    : { code: "Error", message: String(error) };
}

/** How many runs that have ended are remembered, and how long after their end was told. */
const ENDED_LIMIT = 1000;
const KEEP_TOLD_MS = 600_000;

/**
 * The engine: the runs of this process. Adapters keep nothing between calls, so the runs live here,
 * and a server that makes its adapters anew for every connection finds them again.
 */
export class FunctionRuns {
  readonly identity: ProcessIdentity = thisProcess();
  readonly #runs = new Map<string, FunctionRun>();

  get(key: string): FunctionRun | undefined {
    return this.#runs.get(key);
  }

  start<Input>(key: string, fn: WorkflowFunction<Input>, input: Input): FunctionRun {
    this.#forget();
    const run = new FunctionRun(key);
    this.#runs.set(key, run);
    void run.execute(fn, structuredClone(input));
    return run;
  }

  /** Drops runs whose end was told a while ago, and the oldest of the ended when there are too many. */
  #forget(): void {
    const ended = [...this.#runs.values()].filter((run) => run.ended);
    for (const [index, run] of ended.entries()) {
      const told = run.toldAt !== undefined && Date.now() - run.toldAt > KEEP_TOLD_MS;
      if (told || ended.length - index > ENDED_LIMIT) this.#runs.delete(run.key);
    }
  }
}
