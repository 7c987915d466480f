import type { Json, JsonObject, RunRef, WorkflowAdapter } from "@taskferry/core";

/** A value or a promise of it. */
export type Awaitable<Value> = Value | Promise<Value>;

/** A native engine of its own, and the way to it. */
export interface Subject<Engine> {
  /** Whatever your {@link Drive} needs to reach the engine: a handle, a client, a URL. */
  readonly engine: Engine;
  /**
   * A new adapter instance on this engine, as a new process would make it: same options, nothing shared.
   * Called several times.
   */
  connect(): Awaitable<WorkflowAdapter>;
  /** Takes the engine down, with calls still hanging in it. */
  close?(): Awaitable<void>;
}

/** One run, as the kit knows it. */
export interface DrivenRun {
  /** The start key. */
  readonly key: string;
  /** What `start` returned, or the better ref that a read told. */
  readonly ref: RunRef;
  /** The native input. */
  readonly input: Json;
}

/** An answer as the native engine took it. */
export interface ReceivedAnswer {
  readonly accepted: boolean;
  readonly content?: Json;
}

/** A webhook delivery as the engine would send it. */
export interface Delivery {
  /** Lower-case header names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/**
 * Forces native situations, behind the adapter's back. Each member that is there is a situation the kit can test;
 * each one that is not has to be declared by a skip with a reason. A started run must go on until it is driven.
 */
export interface Drive<Engine> {
  /** Wraps a payload into an input that this engine's workflow takes. @default the payload itself */
  input?(engine: Engine, payload: JsonObject): Awaitable<Json>;

  /** How many native runs there are, whatever their state. */
  runs?(engine: Engine): Awaitable<number>;
  /** The input that the native run was started with, unwrapped to the payload. */
  inputOf?(engine: Engine, run: DrivenRun): Awaitable<Json>;
  /** The size of the largest input that the engine takes, in bytes of its JSON text as UTF-8. */
  maxInputBytes?(engine: Engine): number;
  /** Words that must never be seen outside: the credentials that the adapter was made with. */
  secrets?(engine: Engine): readonly string[];

  /** The run ends well and returns this value. */
  finish?(engine: Engine, run: DrivenRun, value: Json): Awaitable<void>;
  /** The run ends badly, with this error name and message if the engine lets you choose. */
  fail?(engine: Engine, run: DrivenRun, failure: { code: string; message: string }): Awaitable<void>;
  /** Runs that are started from now on wait in the engine's queue. */
  queue?(engine: Engine): Awaitable<void>;
  /** The run reports this progress. */
  progress?(engine: Engine, run: DrivenRun, done: number, total: number): Awaitable<void>;
  /** The run writes this line to its log. */
  log?(engine: Engine, run: DrivenRun, line: string): Awaitable<void>;
  /** The run enters a state that no adapter of today knows. Returns the engine's word for it. */
  unknownWord?(engine: Engine, run: DrivenRun): Awaitable<string>;
  /** The native run is deleted. */
  vanish?(engine: Engine, run: DrivenRun): Awaitable<void>;
  /** A run that has ended begins again under the same native id (a redrive, a re-run). */
  revive?(engine: Engine, run: DrivenRun): Awaitable<void>;
  /** The engine takes a stop of this run, but the run goes on (clean-up steps). */
  deferStop?(engine: Engine, run: DrivenRun): Awaitable<void>;

  /** The run asks one more question and waits. It goes on (until driven) when all are answered. */
  ask?(engine: Engine, run: DrivenRun): Awaitable<void>;
  /** The run's open questions are closed by somebody else. */
  withdraw?(engine: Engine, run: DrivenRun): Awaitable<void>;
  /** The answers that the run was given, oldest first. */
  answers?(engine: Engine, run: DrivenRun): Awaitable<readonly ReceivedAnswer[]>;

  /** The engine throttles every call, and asks to be left alone this long where its protocol can say so. */
  throttle?(engine: Engine, retryAfterMs: number): Awaitable<void>;
  /** The engine refuses every start for good (no such workflow, access denied), quoting the input if it does that. */
  reject?(engine: Engine): Awaitable<void>;
  /** Every connection to the engine breaks before there is an answer. */
  disconnect?(engine: Engine): Awaitable<void>;
  /** The engine takes every call and never answers. */
  hang?(engine: Engine): Awaitable<void>;
  /** The next start makes a run, but its response is lost. */
  loseStartResponse?(engine: Engine): Awaitable<void>;
  /** Starts from now on succeed, but their responses do not name the run. */
  omitStartId?(engine: Engine): Awaitable<void>;

  /** An authentic delivery about this run. */
  event?(engine: Engine, run: DrivenRun): Awaitable<Delivery>;
  /** An authentic delivery about nothing that any run has to do with. */
  foreignEvent?(engine: Engine): Awaitable<Delivery>;
}

/** What a requirement may need of a {@link Drive}. */
export type DriveName = Exclude<keyof Drive<unknown>, "input">;

/** A {@link Drive} that knows its engine. */
export type BoundDrive = {
  readonly [Name in DriveName]?: Required<Drive<unknown>>[Name] extends (
    engine: unknown,
    ...args: infer Args
  ) => infer Result
    ? (...args: Args) => Result
    : never;
};

/** Hands the engine to every situation of a drive. */
export function bindDrive<Engine>(drive: Drive<Engine>, engine: Engine): BoundDrive {
  const bound = Object.entries(drive).map(([name, situation]) => [
    name,
    (...args: unknown[]) => situation.call(drive, engine, ...args),
  ]);
  return Object.fromEntries(bound) as BoundDrive;
}
