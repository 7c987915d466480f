import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import {
  type ErrorVerdict,
  isEngineError,
  type Json,
  type JsonObject,
  type Question,
  type RunRef,
  type RunState,
  type RunStatus,
  type StartedRun,
  type WorkflowAdapter,
} from "@taskferry/core";
import { type BoundDrive, bindDrive, type Drive, type DrivenRun, type Subject } from "./drive.js";

/** How to start a run in a scene. */
export interface SceneStart {
  readonly key?: string;
  readonly payload?: JsonObject;
  readonly retry?: boolean;
  readonly signal?: AbortSignal;
}

/** What a {@link Scene} is made of. */
export interface SceneOptions<Engine> {
  readonly create: () => Subject<Engine> | Promise<Subject<Engine>>;
  readonly drive: Drive<Engine>;
  /** How long a situation may take to show, in milliseconds. */
  readonly patienceMs: number;
}

const ENDED: readonly RunStatus[] = ["completed", "failed", "cancelled", "unknown"];

/** Whether a run with this status has ended. */
export function hasEnded(status: RunStatus): boolean {
  return ENDED.includes(status);
}

/** The stage of one requirement: a fresh engine, an adapter on it, and the part that core would play. */
export class Scene {
  readonly patienceMs: number;
  /** Never aborted before the scene is over. */
  readonly signal: AbortSignal;
  readonly #over = new AbortController();
  /** Before any start of the scene, as an attempt is written before it is made. */
  readonly #startedAt = Date.now();
  readonly #opened: WorkflowAdapter[];
  readonly #claims = new Map<string, string>();
  readonly #another: () => Promise<Scene>;

  private constructor(
    readonly adapter: WorkflowAdapter,
    readonly drive: BoundDrive,
    private readonly subject: Subject<unknown>,
    private readonly wrap: (payload: JsonObject) => Promise<Json>,
    options: SceneOptions<never>,
    another: () => Promise<Scene>,
  ) {
    this.patienceMs = options.patienceMs;
    this.signal = this.#over.signal;
    this.#opened = [adapter];
    this.#another = another;
  }

  static async open<Engine>(options: SceneOptions<Engine>): Promise<Scene> {
    const subject = await options.create();
    const { engine } = subject;
    const wrap = async (payload: JsonObject) => (await options.drive.input?.(engine, payload)) ?? payload;
    return new Scene(
      await subject.connect(),
      bindDrive(options.drive, engine),
      subject,
      wrap,
      options as SceneOptions<never>,
      () => Scene.open(options),
    );
  }

  /** A second scene, from another call of `create`. The caller closes it. */
  another(): Promise<Scene> {
    return this.#another();
  }

  /** What a new process would have: another adapter instance on the same engine. */
  async connect(): Promise<WorkflowAdapter> {
    const adapter = await this.subject.connect();
    this.#opened.push(adapter);
    return adapter;
  }

  async close(): Promise<void> {
    this.#over.abort();
    await Promise.allSettled(this.#opened.map((adapter) => adapter.close?.()));
    await this.subject.close?.();
  }

  /** A start key as core draws it: 26 characters of `[a-z0-9]`. */
  key(): string {
    return Array.from({ length: 26 }, () => randomInt(36).toString(36)).join("");
  }

  input(payload: JsonObject): Promise<Json> {
    return this.wrap(payload);
  }

  async start(start: SceneStart = {}, adapter: WorkflowAdapter = this.adapter): Promise<SceneRun> {
    const {
      key = this.key(),
      payload = { note: "a run of the kit" },
      retry = false,
      signal = this.signal,
    } = start;
    const input = await this.wrap(payload);
    return new SceneRun(this, adapter, key, input, await adapter.start({ key, input, retry, signal }));
  }

  /** A run that waits with its first question. */
  async startAsking(): Promise<{ readonly run: SceneRun; readonly question: Question }> {
    assert.ok(this.drive.ask);
    const run = await this.start();
    await this.drive.ask(run);
    return { run, question: await run.untilAsked() };
  }

  /** The run that a `find` told of. */
  adopt(key: string, input: Json, found: StartedRun, adapter: WorkflowAdapter): SceneRun {
    return new SceneRun(this, adapter, key, input, found);
  }

  /** What core would call for the run of an interrupted start. */
  async find(key: string, adapter: WorkflowAdapter, signal = this.signal): Promise<StartedRun | undefined> {
    assert.ok(adapter.find);
    const input = await this.wrap({ note: "a run of the kit" });
    const startedAtMs = this.#startedAt;
    const isClaimed = this.isClaimed(key);
    return adapter.find({ key, input, startedAtMs, lastStartedAtMs: startedAtMs, signal, isClaimed });
  }

  isClaimed(key: string): (claim: string) => Promise<boolean> {
    return async (claim) => (this.#claims.get(claim) ?? key) !== key;
  }

  /** Takes a native id for this key. Refused, as core would, when another key holds it. */
  claim(key: string, claim: string | undefined): boolean {
    if (claim === undefined) return true;
    if ((this.#claims.get(claim) ?? key) !== key) return false;
    this.#claims.set(claim, key);
    return true;
  }

  /** The error that a call throws, and what it means. Fails when the call goes through. */
  async refusal(
    call: Promise<unknown>,
    adapter = this.adapter,
  ): Promise<{ error: unknown; verdict: ErrorVerdict }> {
    const error = await call.then(
      () => assert.fail("the call went through"),
      (thrown: unknown) => thrown,
    );
    return { error, verdict: verdictOf(adapter, error) };
  }

  /** Tries until the assertion holds, for as long as the patience lasts. */
  async eventually<Value>(attempt: () => Promise<Value>): Promise<Value> {
    const deadline = Date.now() + this.patienceMs;
    for (let pauseMs = 1; ; pauseMs = Math.min(pauseMs * 2, 250)) {
      try {
        return await attempt();
      } catch (error) {
        if (Date.now() > deadline) throw error;
      }
      await delay(pauseMs);
    }
  }
}

/** What an error of this adapter means, as core's guard sees it. */
export function verdictOf(adapter: WorkflowAdapter, error: unknown): ErrorVerdict {
  if (isEngineError(error)) return error.verdict;
  return adapter.explain?.(error) ?? { kind: "ambiguous" };
}

/** One run in a scene. Everything it is told goes through JSON first, as it would through core's store. */
export class SceneRun implements DrivenRun {
  ref: RunRef;
  readonly started: StartedRun;
  #attempt: number | undefined;
  #native: string | undefined;
  #stopsSent = 0;
  #stopRequestedAt: number | undefined;
  readonly #startedAt = Date.now();

  constructor(
    private readonly scene: Scene,
    readonly adapter: WorkflowAdapter,
    readonly key: string,
    readonly input: Json,
    started: StartedRun,
  ) {
    this.started = started;
    this.ref = throughJson(started.ref);
    scene.claim(key, started.claim);
  }

  /** The same run, seen by another adapter instance. */
  over(adapter: WorkflowAdapter): SceneRun {
    return new SceneRun(this.scene, adapter, this.key, this.input, { ref: this.ref });
  }

  async read(signal = this.scene.signal): Promise<RunState> {
    const state = await this.adapter.read(this.ref, {
      key: this.key,
      ageMs: Date.now() - this.#startedAt,
      ...(this.#attempt !== undefined && { attempt: this.#attempt }),
      ...(this.#native !== undefined && { native: this.#native }),
      signal,
      isClaimed: this.scene.isClaimed(this.key),
    });
    if (state.ref !== undefined && this.scene.claim(this.key, state.claim)) this.ref = throughJson(state.ref);
    this.#attempt ??= state.attempt;
    this.#native = state.native;
    return state;
  }

  async stop(signal = this.scene.signal): Promise<void> {
    assert.ok(this.adapter.stop);
    this.#stopRequestedAt ??= Date.now();
    const requestedAgoMs = Date.now() - this.#stopRequestedAt;
    await this.adapter.stop(this.ref, { signal, stopsSent: this.#stopsSent++, requestedAgoMs });
  }

  /** Reads until the state is as wanted. Errors pass: a run may take a while to appear. */
  async until(wanted: string, test: (state: RunState) => boolean): Promise<RunState> {
    return this.scene.eventually(async () => {
      const state = await this.read();
      assert.ok(test(state), `waited for ${wanted}, but the run is ${state.status} (${state.native})`);
      return state;
    });
  }

  async untilStatus(status: RunStatus): Promise<RunState> {
    return this.until(status, (state) => state.status === status);
  }

  async untilEnded(): Promise<RunState> {
    return this.until("an end", (state) => hasEnded(state.status));
  }

  /** Waits for an open question, whatever the status says. */
  async untilAsked(isNew: (question: Question) => boolean = () => true): Promise<Question> {
    const state = await this.until("a question", ({ questions = [] }) => questions.some(isNew));
    return state.questions?.find(isNew) ?? assert.fail("no question");
  }
}

/** What is left of a value after it was stored. */
export function throughJson<Value>(value: Value): Value {
  return JSON.parse(JSON.stringify(value)) as Value;
}

/** Fails unless storing the value changes nothing. */
export function assertJson(value: unknown, what: string): void {
  const text = JSON.stringify(value);
  assert.notEqual(text, undefined, `${what} is not JSON`);
  // An absent and an undefined property are the same to core; everything else has to survive.
  const stored: unknown = JSON.parse(text);
  assert.deepStrictEqual(stored, withoutUndefined(value), `${what} does not survive JSON`);
}

function withoutUndefined(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutUndefined);
  if (value === null || typeof value !== "object" || Object.getPrototypeOf(value) !== Object.prototype)
    return value;
  const entries = Object.entries(value).filter(([, inner]) => inner !== undefined);
  return Object.fromEntries(entries.map(([key, inner]) => [key, withoutUndefined(inner)]));
}
