/**
 * What the engine needs from a database. `sqlite.ts` and `postgres.ts` give it, over the same Kysely schema and
 * migrations; the engine knows neither.
 */
import type { Answer, Question } from "../contract/adapter.js";
import type { JsonObject } from "../contract/json.js";
import type { StoredQuestion, Task } from "../contract/task.js";

/** A task that is not stored yet: what the store sets itself is missing. */
export type NewTask = Omit<Task, "version" | "leaseHolder" | "leaseUntil">;

/** What may change about a task. Keys that name it, and the version, may not. */
export type TaskPatch = Partial<
  Omit<
    Task,
    | "owner"
    | "taskId"
    | "generation"
    | "method"
    | "workflow"
    | "engine"
    | "request"
    | "idempotencyKey"
    | "requestHash"
    | "startKey"
    | "createdAt"
    | "version"
    | "leaseHolder"
    | "leaseUntil"
  >
>;

/** Why a task is not there any more. */
export type Tombstone = "expired" | "deleted";

/** What changes about a task's questions, in the same transaction as its row. */
export interface QuestionChanges {
  /**
   * The questions that are open at the engine now. New keys are inserted as `open`; stored `open` questions that are
   * missing become `gone`; a key that was ever stored is never opened again.
   */
  readonly open?: readonly Question[];
  /** Keys whose answer the engine has taken. */
  readonly delivered?: readonly string[];
  /** Keys that the engine no longer knows. */
  readonly gone?: readonly string[];
  /** Answers to open questions; keys that are unknown or not open are ignored. */
  readonly answers?: Readonly<Record<string, Answer>>;
}

/** What the event log may say. `docs/observability.md` has the schema of each. */
export type TaskEventType =
  | "task.created"
  | "task.status"
  | "task.changed"
  | "task.ended"
  | "task.deleted"
  | "task.expired"
  | "run.starting"
  | "run.start_deferred"
  | "run.start_ambiguous"
  | "run.started"
  | "run.unreadable"
  | "run.stop_sent"
  | "run.stop_failed"
  | "question.answered"
  | "answer.delivered"
  | "answer.deferred"
  | "answer.lost"
  | "cancel.requested"
  | "cancel.confirmed"
  | "cancel.unresolved";

/** An entry for the append-only event log (the audit). Never arguments, results or secrets. */
export interface TaskEvent {
  /** To the store, any text; the engine writes those of {@link TaskEventType}. */
  readonly type: string;
  readonly detail?: JsonObject;
}

/** An event as the engine and the store themselves write it. */
export interface KnownEvent extends TaskEvent {
  readonly type: TaskEventType;
}

/** A stored event. `seq` grows; gaps are possible. A newer release may have written a type that this one does not know. */
export interface StoredEvent extends TaskEvent {
  readonly seq: number;
  readonly at: number;
  readonly owner: string;
  readonly taskId: string;
}

/** Where a page of a list begins: the last task of the page before. Newest first. */
export interface ListPosition {
  readonly createdAt: number;
  readonly taskId: string;
}

/** A lease on a task's work. Holders are server instances. */
export interface LeaseRequest {
  readonly holder: string;
  readonly now: number;
  readonly until: number;
}

/** What goes with a new row. */
export interface InsertOptions {
  /** A lease on the task's work. */
  readonly lease?: LeaseRequest;
  /** How many tasks may count against the owner's concurrency, this one among them; counted in the same transaction. */
  readonly atMost?: number;
}

/** What goes with a change of a row. */
export interface UpdateOptions {
  readonly questions?: QuestionChanges;
  readonly events?: readonly TaskEvent[];
  readonly now?: number;
  /** Gives back this holder's lease in the same transaction. */
  readonly release?: string;
}

export interface TaskStore {
  /**
   * Stores a new task and its first events, atomically.
   * @throws WorkflowError `limit_exceeded` if `atMost` tasks run already; `task_exists` if (owner, taskId) is taken, also by a tombstone-free old row;
   *   `idempotency_conflict` with `data: { taskId }` if (owner, idempotencyKey) is taken.
   */
  insert(task: NewTask, events: readonly TaskEvent[], options?: InsertOptions): Promise<Task>;

  get(owner: string, taskId: string): Promise<Task | undefined>;
  findByIdempotencyKey(owner: string, key: string): Promise<Task | undefined>;
  /** The newest task that was made by this JSON-RPC request of this connection. */
  findByRequest(owner: string, connection: string, requestId: string): Promise<Task | undefined>;
  /** Newest first, strictly after `after`. */
  list(
    owner: string,
    options: { readonly after?: ListPosition; readonly limit: number },
  ): Promise<readonly Task[]>;
  /** Tasks that count against an owner's concurrency: not terminal, or terminal with a stop still owed; no more than `upTo`. */
  countActive(owner: string, upTo: number): Promise<number>;
  /** Tasks by status and engine, over all owners, for metrics. */
  countByStatus(): Promise<
    readonly { readonly status: string; readonly engine: string; readonly count: number }[]
  >;
  /** Cancels that no engine has confirmed yet, over all owners, with when the oldest of them was asked for. */
  owedCancels(): Promise<
    readonly { readonly engine: string; readonly count: number; readonly oldestAt: number }[]
  >;

  /**
   * Changes a task, and its questions, in one transaction; bumps `version` and appends the events.
   * @param task as last read: its `version` is the optimistic lock.
   * @throws WorkflowError `stale_version` if the row has changed since, or is gone; `illegal_transition` if the status
   *   may not become the patched one; a terminal row accepts no change of status, outcome or endedAt.
   *   `task_exists` with `data: { claim }` if another task of the same engine holds `patch.claim`.
   */
  update(task: Task, patch: TaskPatch, options?: UpdateOptions): Promise<Task>;

  /** All questions ever asked, oldest first. */
  questions(owner: string, taskId: string): Promise<readonly StoredQuestion[]>;
  /** Takes (or renews) the right to ask a client this open question. False: another holder has it, or it is not open. */
  leaseQuestion(owner: string, taskId: string, key: string, lease: LeaseRequest): Promise<boolean>;
  releaseQuestion(owner: string, taskId: string, key: string, holder: string): Promise<void>;

  /** Whether a claim is held by a task other than this one. */
  isClaimed(
    engine: string,
    claim: string,
    except: { readonly owner: string; readonly taskId: string },
  ): Promise<boolean>;

  /** Takes the lease on one task; `undefined` if another holder has it or the task is gone. Does not bump `version`. */
  lease(owner: string, taskId: string, lease: LeaseRequest): Promise<Task | undefined>;
  /** Takes leases on tasks whose `dueAt` has come, oldest first, among these workflows. PostgreSQL: SKIP LOCKED. */
  leaseDue(
    lease: LeaseRequest & { readonly workflows: readonly string[]; readonly limit: number },
  ): Promise<readonly Task[]>;
  /** Extends leases that are still held. */
  renewLease(owner: string, taskId: string, lease: LeaseRequest): Promise<boolean>;
  releaseLease(owner: string, taskId: string, holder: string): Promise<void>;
  /** When the next `dueAt` comes, over these workflows; `undefined`: nothing is owed. */
  nextDue(workflows: readonly string[]): Promise<number | undefined>;

  /** Tasks that are bound to this native run. */
  findByRun(engine: string, ref: string): Promise<readonly Task[]>;

  /** Deletes a task with its questions and leaves a tombstone. False: it was not there. */
  remove(
    owner: string,
    taskId: string,
    tombstone: Tombstone,
    now: number,
    event: TaskEvent,
  ): Promise<boolean>;
  tombstone(owner: string, taskId: string): Promise<Tombstone | undefined>;
  /**
   * Removes up to `limit` tasks whose `expiresAt` has come (not those that still owe a stop), tombstones older than
   * `tombstonesBefore`, events older than `eventsBefore`. Safe in several processes at once.
   */
  sweep(options: {
    readonly now: number;
    readonly limit: number;
    readonly tombstonesBefore: number;
    readonly eventsBefore: number;
  }): Promise<{ readonly tasks: number; readonly tombstones: number; readonly events: number }>;

  /** Events in order, after `seq`. */
  events(options: {
    readonly after?: number;
    readonly owner?: string;
    readonly taskId?: string;
    readonly limit: number;
  }): Promise<readonly StoredEvent[]>;
  /** Appends events that belong to no change of a row (a look-up that failed, a limit that was hit). */
  record(owner: string, taskId: string, events: readonly TaskEvent[], now: number): Promise<void>;

  /**
   * Calls back when a task's row has changed, by this process or by another one on the same database, soon after
   * (SQLite: `PRAGMA data_version`, looked at only while somebody listens; PostgreSQL: LISTEN/NOTIFY).
   * @returns a function that ends the listening.
   */
  onChange(listener: (owner: string, taskId: string) => void): () => void;

  /** A secret that all servers on this database share: signs cursors and request states. 32 bytes, made once. */
  secret(): Promise<Uint8Array>;

  close(): Promise<void>;
}
