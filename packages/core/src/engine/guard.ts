/**
 * Wraps every adapter once, so that adapters stay naive: a deadline and an abort signal for each call, what an error
 * means, and a check of what comes back. Nothing outside this file calls an adapter.
 */
import type {
  Answer,
  CallContext,
  ErrorVerdict,
  EventRequest,
  LogPage,
  Question,
  RunRef,
  RunState,
  StartedRun,
  WorkflowAdapter,
} from "../contract/adapter.js";
import { isEngineError, WorkflowError } from "../contract/errors.js";
import { isJsonObject, type Json } from "../contract/json.js";

/** How long calls may take, in milliseconds. */
export interface Deadlines {
  readonly readMs: number;
  readonly startMs: number;
  readonly stopMs: number;
}

/** An adapter's error with its verdict. The message is fit for clients. */
export class NativeCallError extends Error {
  override readonly name = "NativeCallError";
  constructor(
    readonly verdict: Required<Pick<ErrorVerdict, "kind" | "code" | "message">> &
      Pick<ErrorVerdict, "retryAfterMs">,
    cause: unknown,
  ) {
    super(verdict.message, { cause });
  }
}

type GuardedCall<T> = (signal: AbortSignal) => Promise<T>;

const RUN_STATUSES = new Set([
  "submitted",
  "working",
  "input_required",
  "completed",
  "failed",
  "cancelled",
  "unknown",
  "unchanged",
]);

/** Every call to an adapter, made safe. All methods throw {@link NativeCallError} and nothing else. */
export class GuardedAdapter {
  readonly engine: string;
  readonly startsOnce: boolean;
  readonly appearsWithinMs: number;
  readonly consoleUrl: string | undefined;

  constructor(
    private readonly adapter: WorkflowAdapter,
    private readonly deadlines: Deadlines,
    private readonly shutdown: AbortSignal,
  ) {
    this.engine = adapter.engine;
    this.startsOnce = adapter.startsOnce ?? false;
    this.appearsWithinMs = adapter.appearsWithinMs ?? 60_000;
    this.consoleUrl = adapter.consoleUrl;
  }

  get canFind(): boolean {
    return this.adapter.find !== undefined;
  }
  get canStop(): boolean {
    return this.adapter.stop !== undefined;
  }

  start(request: { key: string; input: Json; retry: boolean }): Promise<StartedRun> {
    const limit = this.adapter.startTimeoutMs ?? this.deadlines.startMs;
    return this.call("start", limit, async (signal) =>
      checkStarted(await this.adapter.start({ ...request, signal })),
    );
  }

  find(request: {
    key: string;
    input: Json;
    startedAtMs: number;
    lastStartedAtMs: number;
    isClaimed: (claim: string) => Promise<boolean>;
  }): Promise<StartedRun | undefined> {
    return this.call("find", this.deadlines.startMs, async (signal) => {
      const found = await this.adapter.find?.({ ...request, signal });
      return found === undefined ? undefined : checkStarted(found);
    });
  }

  read(
    ref: RunRef,
    request: {
      key: string;
      ageMs: number;
      attempt?: number;
      native?: string;
      isClaimed: (claim: string) => Promise<boolean>;
    },
  ): Promise<RunState> {
    return this.call("read", this.deadlines.readMs, async (signal) =>
      checkState(await this.adapter.read(ref, { ...request, signal })),
    );
  }

  async stop(ref: RunRef, request: { stopsSent: number; requestedAgoMs: number }): Promise<void> {
    await this.call("stop", this.deadlines.stopMs, async (signal) =>
      this.adapter.stop?.(ref, { ...request, signal }),
    );
  }

  async answer(ref: RunRef, questionKey: string, answer: Answer): Promise<void> {
    await this.call("answer", this.deadlines.stopMs, async (signal) => {
      if (this.adapter.answer === undefined) throw new Error(`${this.engine} takes no answers`);
      await this.adapter.answer(ref, questionKey, answer, { signal });
    });
  }

  logs(ref: RunRef, cursor: string | undefined): Promise<LogPage> {
    return this.call("logs", this.deadlines.readMs, async (signal) => {
      if (this.adapter.logs === undefined) throw new Error(`${this.engine} gives no logs`);
      return this.adapter.logs(ref, cursor, { signal });
    });
  }

  events(request: Omit<EventRequest, keyof CallContext>): Promise<readonly RunRef[]> {
    return this.call("events", this.deadlines.readMs, async (signal) =>
      this.adapter.events === undefined ? [] : this.adapter.events({ ...request, signal }),
    );
  }

  async close(): Promise<void> {
    await this.adapter.close?.();
  }

  private async call<T>(operation: string, limitMs: number, run: GuardedCall<T>): Promise<T> {
    const deadline = new AbortController();
    const { signal } = deadline;
    let timer: NodeJS.Timeout | undefined;
    let onShutdown: (() => void) | undefined;
    // An adapter may ignore its signal, so the race is decided here.
    const cutOff = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => {
        const message = `${this.engine} did not answer ${operation} within ${limitMs} ms`;
        const error = new NativeCallError(
          { kind: "ambiguous", code: "DeadlineExceeded", message },
          undefined,
        );
        reject(error);
        deadline.abort(error);
      }, limitMs);
      onShutdown = () => {
        const message = "The server is shutting down";
        const error = new NativeCallError({ kind: "ambiguous", code: "Aborted", message }, undefined);
        reject(error);
        deadline.abort(error);
      };
      if (this.shutdown.aborted) onShutdown();
      else this.shutdown.addEventListener("abort", onShutdown, { once: true });
    });
    try {
      return await Promise.race([run(signal), cutOff]);
    } catch (error) {
      throw error instanceof NativeCallError ? error : this.explain(operation, error);
    } finally {
      clearTimeout(timer);
      if (onShutdown !== undefined) this.shutdown.removeEventListener("abort", onShutdown);
    }
  }

  private explain(operation: string, error: unknown): NativeCallError {
    let verdict: ErrorVerdict | undefined;
    try {
      verdict = isEngineError(error) ? error.verdict : this.adapter.explain?.(error);
    } catch {
      // A broken explain must not hide the error that it was asked about.
    }
    const kind = verdict?.kind ?? "ambiguous";
    const code = verdict?.code ?? (error instanceof Error ? error.name : "Error");
    // An unexplained message may quote inputs or secrets: it goes into `cause`, not to clients.
    const message = verdict?.message ?? `${this.engine}: ${operation} failed (${code})`;
    return new NativeCallError(
      {
        kind,
        code,
        message,
        ...(verdict?.retryAfterMs !== undefined && { retryAfterMs: verdict.retryAfterMs }),
      },
      error,
    );
  }
}

function violation(what: string): WorkflowError {
  return new WorkflowError("contract_violated", `The adapter broke its contract: ${what}`);
}

function checkJson(value: unknown, what: string): void {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch {
    // bigint or a cycle
  }
  if (text === undefined) throw violation(`${what} is not JSON`);
}

function checkStarted(run: StartedRun): StartedRun {
  if (!isJsonObject(run) || run.ref === undefined) throw violation("start returned no ref");
  checkJson(run.ref, "ref");
  if (run.state !== undefined) checkState(run.state);
  return run;
}

function checkState(state: RunState): RunState {
  if (!isJsonObject(state) || !RUN_STATUSES.has(state.status))
    throw violation("read returned no known status");
  if (typeof state.native !== "string") throw violation("read returned no native word");
  if (state.output !== undefined) checkJson(state.output, "output");
  if (state.failure !== undefined) checkJson(state.failure, "failure");
  for (const question of state.questions ?? []) checkQuestion(question);
  return state;
}

function checkQuestion(question: Question): void {
  if (typeof question.key !== "string" || question.key.length === 0 || question.key.length > 200) {
    throw violation("a question needs a key of 1 to 200 characters");
  }
  if (typeof question.message !== "string") throw violation("a question needs a message");
  if (question.kind === "url" && typeof question.url !== "string")
    throw violation("a url question needs a url");
  if (question.kind === "sampling" && question.request === undefined)
    throw violation("a sampling question needs a request");
}
