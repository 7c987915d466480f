/**
 * The adapter contract: everything Taskferry needs to know about a workflow engine.
 *
 * Three members are required: `engine`, `start` and `read`. Every other method is a capability that
 * is offered by being there. Adapters are stateless and naive: they call their vendor's SDK, throw
 * what it throws, and keep nothing between calls. Deadlines, retries, pacing, single flight, leases,
 * crash recovery and validation are added around them by core.
 *
 * Everything that crosses this boundary is JSON, because core stores it and may hand it to another
 * process, on another machine, after a restart.
 */
import type { Json, JsonObject } from "./json.js";

/** Where a run is, in adapter-neutral words. */
export type RunStatus =
  /** Accepted, queued, not begun. */
  | "submitted"
  | "working"
  /** Waits for an answer to one of `questions`. */
  | "input_required"
  /** The workflow ran to an end of its own: well (`output`) or badly (`failure`). */
  | "completed"
  /** The call itself could not be carried out, or its outcome is lost. Not for a workflow that ran and failed. */
  | "failed"
  | "cancelled"
  /** The engine itself cannot say any more. Terminal. */
  | "unknown"
  /**
   * Nothing new, or a native word that this adapter does not know: core keeps the last status and logs
   * the `native` word once. Never turn an unknown word into "completed". Where the run has ended in a word that is not
   * known, say so with `hasEnded`.
   */
  | "unchanged";

/**
 * Names one native run: an ARN, a run id, a directory. JSON, made by `start`, `find` or `events`,
 * stored by core, and understood by a new adapter instance in a new process.
 */
export type RunRef = Json;

/** What every call to an adapter carries. */
export interface CallContext {
  /** Aborted when core's deadline for this call has passed or the server shuts down. Pass it to your SDK. */
  readonly signal: AbortSignal;
}

/** A request to start one run. */
export interface StartRequest extends CallContext {
  /**
   * 26 characters of `[a-z0-9]`, safe for native names and labels. Random per task, the same on every
   * retry of this task, and never used again for another one.
   */
  readonly key: string;
  /** The native input: what the workflow's `input` mapping made of the client's arguments. */
  readonly input: Json;
  /** True when an earlier `start` with this key may have reached the engine. */
  readonly retry: boolean;
}

/** A run that exists. */
export interface StartedRun {
  readonly ref: RunRef;
  /** Where a human can look at the run. */
  readonly url?: string;
  /**
   * For engines that cannot keep two tasks apart by key: the native id that this task takes for itself.
   * Core lets one task at a time hold a claim (per `engine` name); see `ReadRequest.isClaimed`.
   */
  readonly claim?: string;
  /** The state, when starting already told it (a synchronous engine). Saves the first read. */
  readonly state?: RunState;
}

/** A request to read one run. */
export interface ReadRequest extends CallContext {
  readonly key: string;
  /** Milliseconds since `start` (or `find`) returned. */
  readonly ageMs: number;
  /** The attempt that this task is about: the first `attempt` that a read reported. */
  readonly attempt?: number;
  /** The last `native` word that was stored. */
  readonly native?: string;
  /** Whether another task has claimed this native id. */
  isClaimed(claim: string): Promise<boolean>;
}

/** What a run looks like now. */
export interface RunState {
  /** The engine's own word for the state, for people and logs, e.g. `"RUNNING"` or `"completed/success"`. */
  readonly native: string;
  readonly status: RunStatus;
  /** One line for people: the current step, the queue, what is waited for. */
  readonly message?: string;
  readonly progress?: RunProgress;
  /** All questions that are open now. Required with `input_required`; an absent question is no longer open. */
  readonly questions?: readonly Question[];
  /** With `completed`: what the workflow returned. */
  readonly output?: RunOutput;
  /**
   * With `completed`: how the workflow failed. With `failed` or `unknown`: what is known about the loss. With
   * `cancelled`: who or what cancelled it (somebody at the engine, a newer run, a time limit), and the links and values
   * that a failure would have had. Told in one line in `statusMessage`, whole in the result.
   */
  readonly failure?: RunFailure;
  /**
   * With `unchanged`: the engine says that the run has ended, in a word that this adapter does not know. Core reads for
   * `Timing.unknownWordMs` more, in case the word is one on the way to another, then ends the task as `unknown` with it.
   */
  readonly hasEnded?: boolean;
  /**
   * Which attempt of the run this state is about, for engines that revive a finished run under the same id
   * (a redrive, a re-run). Core stores the first one it hears and hands it back in `ReadRequest.attempt`; read that
   * attempt where the engine still can. A task that has ended never changes, whatever a later attempt does.
   */
  readonly attempt?: number;
  readonly url?: string;
  /** Ask core to read again no earlier than this many milliseconds from now (throttling, a known timer). */
  readonly nextReadMs?: number;
  /** A better ref, once the run could be told (a dispatch that returned no id). Replaces the stored one. */
  readonly ref?: RunRef;
  /** Goes with `ref`: see `StartedRun.claim`. Refused, and read again later, if another task holds it. */
  readonly claim?: string;
}

/** How far a run is. */
export interface RunProgress {
  readonly done: number;
  readonly total?: number;
}

/** What a completed workflow returned. */
export interface RunOutput {
  /** The machine-readable value. Becomes `structuredContent`. */
  readonly value?: Json;
  /** For people and models. Default: `value` as JSON text. */
  readonly text?: string;
  readonly links?: readonly RunLink[];
}

/** How a workflow failed, or how its outcome was lost. */
export interface RunFailure {
  /** The engine's error name, e.g. `"States.Timeout"`. */
  readonly code: string;
  /** A readable cause. */
  readonly message: string;
  /** The machine-readable rest. Becomes `structuredContent`. */
  readonly value?: Json;
  readonly text?: string;
  readonly links?: readonly RunLink[];
}

/** A link beside a result: a console page, a log, an artifact. */
export interface RunLink {
  readonly uri: string;
  readonly name: string;
  readonly description?: string;
  readonly mimeType?: string;
}

/** Something a run waits to be told. */
export interface Question {
  /** Unique in the run's life: the same step asking again later is another question. At most 200 characters. */
  readonly key: string;
  readonly message: string;
  /**
   * `form` (default): `schema` says what to fill in. `url`: the client is sent to `url`.
   * `sampling`: the client's model is asked; `request` is the params of `sampling/createMessage`.
   */
  readonly kind?: "form" | "url" | "sampling";
  /**
   * A flat JSON Schema object (string, number, integer, boolean, enum properties), as MCP elicitation takes it.
   * Absent: accept or decline, nothing to fill in.
   */
  readonly schema?: JsonObject;
  readonly url?: string;
  readonly request?: JsonObject;
}

/** The response to a question. For `sampling`, `content` is the `CreateMessageResult`. */
export interface Answer {
  readonly action: "accept" | "decline" | "cancel";
  readonly content?: JsonObject;
}

/** A webhook or event delivery, exactly as received. */
export interface EventRequest extends CallContext {
  /** Lower-case header names. */
  readonly headers: Readonly<Record<string, string>>;
  /** The raw bytes: signatures are made over these. */
  readonly body: Uint8Array;
}

/** One page of a run's log. */
export interface LogPage {
  readonly text: string;
  /** Hand it in to get what follows. Absent: the log is complete. */
  readonly cursor?: string;
}

/**
 * What an error of the engine means for the call that threw it.
 *
 * - `rejected`: the engine understood and refused. Nothing happened and trying again will not help
 *   (no such workflow, access denied, invalid input).
 * - `retry`: nothing happened, and the same call may go through later (throttled, unavailable before it was sent).
 * - `ambiguous`: it may or may not have happened (a reset connection, a time-out, 5xx). The default.
 * - `gone`: the run, or the question, does not exist any more (or does not exist yet).
 */
export interface ErrorVerdict {
  readonly kind: "rejected" | "retry" | "ambiguous" | "gone";
  /** The engine's error name. */
  readonly code?: string;
  /**
   * A message fit for the client: no secrets, no raw bodies. Default: a generic line with `code`. Only this reaches
   * clients: what the thrown error itself says may quote the SDK, and is never shown.
   */
  readonly message?: string;
  /** How long the engine asks to be left alone, in milliseconds. */
  readonly retryAfterMs?: number;
}

/** A request to wait for news of one run. */
export interface WatchRequest extends CallContext {
  readonly key: string;
  /** The last `native` word that core knows; absent before the first read. */
  readonly native?: string;
}

/** A workflow engine, as Taskferry sees it. */
export interface WorkflowAdapter {
  /** The engine's name in rows, logs and metrics, e.g. `"aws-step-functions"`. Claims are unique per name. */
  readonly engine: string;

  /**
   * `start` with the same key twice starts one run, even when the first call's response was lost.
   * Without it and without `find`, an interrupted start ends as "start outcome unknown".
   * @default false
   */
  readonly startsOnce?: boolean;

  /**
   * How long `start` may take, in milliseconds, for engines whose start call is the whole run.
   * @default 60000
   */
  readonly startTimeoutMs?: number;

  /**
   * How long after `start` a run that cannot be found is "not there yet" rather than gone, in milliseconds.
   * @default 60000
   */
  readonly appearsWithinMs?: number;

  /**
   * How soon after `start` the first read pays off while somebody waits for the run, in milliseconds. The reads that
   * follow grow geometrically from it up to the workflow's `pollMs`, so a run costs about
   * log2(duration / `firstReadMs`) reads more. Choose it by the shortest run worth hearing at once and by the quota.
   * @default 100
   */
  readonly firstReadMs?: number;

  /** Where a human can look for a run whose start left no trace here: a console page. Shown with "start outcome unknown". */
  readonly consoleUrl?: string;

  /** Starts one run. Throws what the SDK throws. */
  start(request: StartRequest): Promise<StartedRun>;

  /** Reads one run. Cheap, repeatable, without side effects. */
  read(ref: RunRef, request: ReadRequest): Promise<RunState>;

  /**
   * Resolves when a read may tell something new: the run has ended, asks a question, or has moved on from
   * `request.native`. At once where that is already so. A hint that saves the wait for the next read: core reads then,
   * and watches again while the run goes on and somebody waits for it. Rejects when this process
   * cannot hear of the run (core then polls), or when `request.signal` is aborted. A watch that is lost costs latency only; it must keep no process alive.
   */
  watch?(ref: RunRef, request: WatchRequest): Promise<void>;

  /**
   * Whether a run that was seen before and now reads as `gone` is surely gone: its parent (the repository, the state
   * machine) can be read with the same credentials, so that nobody has merely lost access. `false`, or an error: it
   * cannot be told, and the task goes on, saying so. Asked before a task that was not found for `Timing.lostAfterMs`
   * ends as lost. Absent: the time alone decides.
   */
  isSurelyGone?(ref: RunRef, request: CallContext): Promise<boolean>;

  /**
   * Asks the engine to stop the run. Resolving means that the engine took the request, not that the run
   * has ended: the next reads tell. Called again until then, so it must be repeatable; after the end it resolves,
   * or throws an error that is `gone`.
   */
  stop?(ref: RunRef, request: StopRequest): Promise<void>;

  /**
   * The run that an earlier `start` with this key made, or `undefined` when there is surely none.
   * Throw when the engine cannot say (yet).
   */
  find?(request: FindRequest): Promise<StartedRun | undefined>;

  /** Delivers an answer. A question that is no longer open: throw what the SDK throws (a `gone` verdict). */
  answer?(ref: RunRef, questionKey: string, answer: Answer, request: CallContext): Promise<void>;

  /**
   * Verifies an event delivery and tells which runs to read again; `[]` for events about nothing of ours.
   * Throws when the delivery is not authentic. A run is found by its ref: the one told here must equal the stored one
   * as canonical JSON (same members, any order).
   */
  events?(request: EventRequest): Promise<readonly RunRef[]>;

  /** Reads the run's log from a cursor on. */
  logs?(ref: RunRef, cursor: string | undefined, request: CallContext): Promise<LogPage>;

  /** Says what an error thrown by this adapter means. Absent or `undefined`: ambiguous. */
  explain?(error: unknown): ErrorVerdict | undefined;

  /** Releases what the adapter opened (clients, sockets). Runs go on. */
  close?(): Promise<void>;
}

/** A request to stop one run. */
export interface StopRequest extends CallContext {
  /** How many stops were sent before this one: 0 for the first. */
  readonly stopsSent: number;
  /** Milliseconds since the client asked for it, e.g. to use force after a while. */
  readonly requestedAgoMs: number;
}

/** A search for the run of an interrupted start. */
export interface FindRequest extends CallContext {
  readonly key: string;
  readonly input: Json;
  /** When the first start was attempted, in epoch milliseconds by our clock. */
  readonly startedAtMs: number;
  /** When the latest start was attempted: from then on count how long a list may lag behind. */
  readonly lastStartedAtMs: number;
  isClaimed(claim: string): Promise<boolean>;
}
