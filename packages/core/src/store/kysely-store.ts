/** The task store over Kysely, for any database behind {@link Database}. */
import { randomBytes } from "node:crypto";
import { type CompiledQuery, type Kysely, sql } from "kysely";
import { isWorkflowError, WorkflowError } from "../errors.js";
import { isTerminal, mayBecome, type StoredQuestion, type Task } from "../task.js";
import { questionWrites } from "./question-writes.js";
import {
  decodeName,
  type EventRow,
  encodeName,
  type Tables,
  type TaskRow,
  toColumns,
  toQuestion,
  toTask,
} from "./schema.js";
import type { Database, Executor } from "./statements.js";
import type {
  LeaseRequest,
  ListPosition,
  NewTask,
  StoredEvent,
  TaskEvent,
  TaskPatch,
  TaskStore,
  Tombstone,
  UpdateOptions,
} from "./task-store.js";

/** Fields whose change somebody may be waiting for. */
const VISIBLE = ["status", "message", "progress", "outcome", "runUrl", "failingSince"] as const;

/** How far below the last event a late one may hide. */
const LATE_EVENTS = 200;

/** Fields that only say when to look next. */
const PACING: ReadonlySet<string> = new Set([
  "nextReadAt",
  "dueAt",
  "lastReadAt",
  "readFailures",
  "seen",
  "native",
  "progress",
  "message",
  "runUrl",
  "failingSince",
]);

export class KyselyTaskStore implements TaskStore {
  private readonly listeners = new Set<(owner: string, taskId: string) => void>();
  private unwatch: (() => void) | undefined;
  private heardSeq = 0;
  private readonly heard = new Set<number>();
  private hearing = false;
  private hearAgain = false;
  private closed = false;
  private readonly shapes = new Map<string, CompiledQuery>();
  /** Compiled once: Kysely's builder costs more than the query itself. */
  private readonly getQuery: CompiledQuery<TaskRow>;

  /** @param build makes queries of the dialect; never executes */
  constructor(
    private readonly db: Database,
    private readonly build: Kysely<Tables>,
  ) {
    this.getQuery = build
      .selectFrom("tasks")
      .selectAll()
      .where("owner", "=", "")
      .where("taskId", "=", "")
      .compile();
  }

  async insert(task: NewTask, events: readonly TaskEvent[], lease?: LeaseRequest): Promise<Task> {
    const held = { leaseHolder: lease?.holder ?? null, leaseUntil: lease?.until ?? null };
    const row = toColumns({ ...task, ...held, version: 1 }) as TaskRow;
    await this.write(async (tx) => {
      try {
        await tx.run(this.insertQuery(row));
      } catch (error) {
        const violated = this.db.violated(error);
        if (violated === "pk")
          throw new WorkflowError("task_exists", `Task ID already exists: ${task.taskId}`);
        if (violated === "idempotency")
          throw new WorkflowError("idempotency_conflict", "The idempotency key is taken");
        throw error;
      }
      await tx.run(this.ofTask(this.build.deleteFrom("tombstones"), row.owner, row.taskId).compile());
      await this.append(tx, row.owner, row.taskId, events, task.createdAt);
    });
    this.tell(task.owner, task.taskId);
    return toTask(row);
  }

  async get(owner: string, taskId: string): Promise<Task | undefined> {
    const query: CompiledQuery<TaskRow> = {
      ...this.getQuery,
      parameters: [encodeName(owner), encodeName(taskId)],
    };
    return this.first(query);
  }

  findByIdempotencyKey(owner: string, key: string): Promise<Task | undefined> {
    return this.first(
      this.build
        .selectFrom("tasks")
        .selectAll()
        .where("owner", "=", encodeName(owner))
        .where("idempotencyKey", "=", key)
        .compile(),
    );
  }

  findByRequest(owner: string, connection: string, requestId: string): Promise<Task | undefined> {
    return this.first(
      this.build
        .selectFrom("tasks")
        .selectAll()
        .where("owner", "=", encodeName(owner))
        .where("connection", "=", connection)
        .where("requestId", "=", requestId)
        .orderBy("createdAt", "desc")
        .limit(1)
        .compile(),
    );
  }

  async list(owner: string, options: { after?: ListPosition; limit: number }): Promise<readonly Task[]> {
    const { after, limit } = options;
    let query = this.build.selectFrom("tasks").selectAll().where("owner", "=", encodeName(owner));
    if (after !== undefined) {
      const taskId = encodeName(after.taskId);
      query = query.where((eb) =>
        eb.and([
          eb("createdAt", "<=", after.createdAt),
          eb.or([eb("createdAt", "<", after.createdAt), eb("taskId", ">", taskId)]),
        ]),
      );
    }
    const rows = await this.all(query.orderBy("createdAt", "desc").orderBy("taskId").limit(limit).compile());
    return rows.map(toTask);
  }

  async countActive(owner: string): Promise<number> {
    const query = this.build
      .selectFrom("tasks")
      .select((eb) => eb.fn.countAll<number>().as("count"))
      .where("owner", "=", encodeName(owner))
      .where((eb) =>
        eb.or([
          eb("endedAt", "is", null),
          eb.and([eb("cancelRequestedAt", "is not", null), eb("cancelConfirmedAt", "is", null)]),
        ]),
      );
    const [row] = await this.all(query.compile());
    return Number(row?.count ?? 0);
  }

  async countByStatus(): Promise<readonly { status: string; engine: string; count: number }[]> {
    const query = this.build
      .selectFrom("tasks")
      .select(["status", "engine", (eb) => eb.fn.countAll<number>().as("count")])
      .groupBy(["status", "engine"]);
    const rows = await this.all(query.compile());
    return rows.map((row) => ({ ...row, count: Number(row.count) }));
  }

  async update(task: Task, patch: TaskPatch, options: UpdateOptions = {}): Promise<Task> {
    const now = options.now ?? Date.now();
    refuseIllegal(task, patch);
    const owner = encodeName(task.owner);
    const taskId = encodeName(task.taskId);
    const visible = options.questions !== undefined || VISIBLE.some((field) => differs(task, patch, field));
    const events = options.events ?? [];
    const told = events.length === 0 && visible ? [{ type: "task.changed" }] : events;
    const changes = toColumns({ ...patch, version: task.version + 1, ...(visible && { updatedAt: now }) });
    // Pacing may be lost in a power cut: then the engine is read once more than needed.
    const durable = told.length > 0 || Object.keys(patch).some((field) => !PACING.has(field));
    const row = await this.write(async (tx) => {
      let updated: TaskRow | undefined;
      try {
        [updated] = await tx.all(this.updateQuery(owner, taskId, task.version, changes, options.release));
      } catch (error) {
        if (this.db.violated(error) !== "claim") throw error;
        throw new WorkflowError("task_exists", "Another task has claimed this run", {
          data: { claim: patch.claim },
        });
      }
      if (updated === undefined) {
        throw new WorkflowError("stale_version", "The task has changed since it was read", {
          retryable: true,
        });
      }
      if (options.questions !== undefined) {
        const stored = await tx.all(this.questionsQuery(owner, taskId));
        for (const query of questionWrites(this.build, owner, taskId, stored, options.questions, now))
          await tx.run(query);
      }
      await this.append(tx, owner, taskId, told, now);
      return updated;
    }, durable);
    if (visible) this.tell(task.owner, task.taskId);
    return toTask(row);
  }

  async questions(owner: string, taskId: string): Promise<readonly StoredQuestion[]> {
    return (await this.all(this.questionsQuery(encodeName(owner), encodeName(taskId)))).map(toQuestion);
  }

  async leaseQuestion(
    owner: string,
    taskId: string,
    key: string,
    { holder, now, until }: LeaseRequest,
  ): Promise<boolean> {
    const query = this.ofTask(
      this.build.updateTable("questions").set({ askHolder: holder, askUntil: until }),
      encodeName(owner),
      encodeName(taskId),
    )
      .where("key", "=", key)
      .where("state", "=", "open")
      .where((eb) =>
        eb.or([eb("askHolder", "is", null), eb("askHolder", "=", holder), eb("askUntil", "<=", now)]),
      );
    return (await this.write((tx) => tx.run(query.compile()), false)) > 0;
  }

  async releaseQuestion(owner: string, taskId: string, key: string, holder: string): Promise<void> {
    const query = this.ofTask(
      this.build.updateTable("questions").set({ askHolder: null, askUntil: null }),
      encodeName(owner),
      encodeName(taskId),
    )
      .where("key", "=", key)
      .where("askHolder", "=", holder);
    await this.write((tx) => tx.run(query.compile()), false);
  }

  async isClaimed(
    engine: string,
    claim: string,
    except: { owner: string; taskId: string },
  ): Promise<boolean> {
    const query = this.build
      .selectFrom("tasks")
      .select(["owner", "taskId"])
      .where("engine", "=", engine)
      .where("claim", "=", claim);
    const [holder] = await this.all(query.compile());
    if (holder === undefined) return false;
    return holder.owner !== encodeName(except.owner) || holder.taskId !== encodeName(except.taskId);
  }

  async lease(
    owner: string,
    taskId: string,
    { holder, now, until }: LeaseRequest,
  ): Promise<Task | undefined> {
    const query = this.ofTask(
      this.build.updateTable("tasks").set({ leaseHolder: holder, leaseUntil: until }),
      encodeName(owner),
      encodeName(taskId),
    )
      .where((eb) =>
        eb.or([eb("leaseHolder", "is", null), eb("leaseHolder", "=", holder), eb("leaseUntil", "<=", now)]),
      )
      .returningAll();
    const [row] = await this.write((tx) => tx.all(query.compile()), false);
    return row === undefined ? undefined : toTask(row as TaskRow);
  }

  async leaseDue(
    request: LeaseRequest & { workflows: readonly string[]; limit: number },
  ): Promise<readonly Task[]> {
    const { holder, now, until, workflows, limit } = request;
    if (workflows.length === 0) return [];
    let due = this.build
      .selectFrom("tasks")
      .select(["owner", "taskId"])
      .where("dueAt", "<=", now)
      .where("workflow", "in", [...workflows])
      .where((eb) => eb.or([eb("leaseHolder", "is", null), eb("leaseUntil", "<=", now)]))
      .orderBy("dueAt")
      .limit(limit);
    if (this.db.skipLocked) due = due.forUpdate().skipLocked();
    // Nothing due is the usual case: it must not take the write lock.
    if ((await this.all(due.limit(1).compile())).length === 0) return [];
    return this.write(async (tx) => {
      const leased: Task[] = [];
      for (const { owner, taskId } of await tx.all(due.compile())) {
        const query = this.ofTask(
          this.build.updateTable("tasks").set({ leaseHolder: holder, leaseUntil: until }),
          owner,
          taskId,
        );
        const [row] = await tx.all(query.returningAll().compile());
        if (row !== undefined) leased.push(toTask(row as TaskRow));
      }
      return leased;
    }, false);
  }

  async renewLease(owner: string, taskId: string, { holder, until }: LeaseRequest): Promise<boolean> {
    const query = this.ofTask(
      this.build.updateTable("tasks").set({ leaseUntil: until }),
      encodeName(owner),
      encodeName(taskId),
    );
    return (await this.write((tx) => tx.run(query.where("leaseHolder", "=", holder).compile()), false)) > 0;
  }

  async releaseLease(owner: string, taskId: string, holder: string): Promise<void> {
    const free = { leaseHolder: null, leaseUntil: null };
    const query = this.ofTask(
      this.build.updateTable("tasks").set(free),
      encodeName(owner),
      encodeName(taskId),
    );
    await this.write((tx) => tx.run(query.where("leaseHolder", "=", holder).compile()), false);
  }

  async nextDue(workflows: readonly string[]): Promise<number | undefined> {
    if (workflows.length === 0) {
      await this.all(this.build.selectFrom("meta").select("name").limit(1).compile());
      return undefined;
    }
    const query = this.build
      .selectFrom("tasks")
      .select("dueAt")
      .where("dueAt", "is not", null)
      .where("workflow", "in", [...workflows])
      .orderBy("dueAt")
      .limit(1);
    const [row] = await this.all(query.compile());
    return row?.dueAt ?? undefined;
  }

  async findByRun(engine: string, ref: string): Promise<readonly Task[]> {
    const query = this.build
      .selectFrom("tasks")
      .selectAll()
      .where("engine", "=", engine)
      .where("runRef", "=", ref);
    return (await this.all(query.compile())).map(toTask);
  }

  async remove(
    owner: string,
    taskId: string,
    tombstone: Tombstone,
    now: number,
    event: TaskEvent,
  ): Promise<boolean> {
    const removed = await this.write((tx) =>
      this.bury(tx, encodeName(owner), encodeName(taskId), tombstone, now, event),
    );
    if (removed) this.tell(owner, taskId);
    return removed;
  }

  async tombstone(owner: string, taskId: string): Promise<Tombstone | undefined> {
    const query = this.ofTask(
      this.build.selectFrom("tombstones").select("reason"),
      encodeName(owner),
      encodeName(taskId),
    );
    const [row] = await this.all(query.compile());
    return row?.reason as Tombstone | undefined;
  }

  async sweep(options: {
    now: number;
    limit: number;
    tombstonesBefore: number;
    eventsBefore: number;
  }): Promise<{ tasks: number; tombstones: number; events: number }> {
    const { now, limit, tombstonesBefore, eventsBefore } = options;
    let expired = this.build
      .selectFrom("tasks")
      .select(["owner", "taskId"])
      .where("expiresAt", "<=", now)
      .where((eb) => eb.or([eb("cancelRequestedAt", "is", null), eb("cancelConfirmedAt", "is not", null)]))
      .orderBy("expiresAt")
      .limit(limit);
    if (this.db.skipLocked) expired = expired.forUpdate().skipLocked();
    return this.write(async (tx) => {
      let tasks = 0;
      for (const { owner, taskId } of await tx.all(expired.compile())) {
        if (await this.bury(tx, owner, taskId, "expired", now, { type: "task.expired" })) tasks += 1;
      }
      const tombstones = await tx.run(
        this.build.deleteFrom("tombstones").where("at", "<", tombstonesBefore).compile(),
      );
      const events = await this.forget(tx, eventsBefore);
      return { tasks, tombstones, events };
    });
  }

  async events(options: {
    after?: number;
    owner?: string;
    taskId?: string;
    limit: number;
  }): Promise<readonly StoredEvent[]> {
    let query = this.build
      .selectFrom("events")
      .selectAll()
      .where("seq", ">", options.after ?? 0);
    if (options.owner !== undefined) query = query.where("owner", "=", encodeName(options.owner));
    if (options.taskId !== undefined) query = query.where("taskId", "=", encodeName(options.taskId));
    const rows = await this.all(query.orderBy("seq").limit(options.limit).compile());
    return rows.map(toEvent);
  }

  async record(owner: string, taskId: string, events: readonly TaskEvent[], now: number): Promise<void> {
    await this.write((tx) => this.append(tx, encodeName(owner), encodeName(taskId), events, now));
  }

  onChange(listener: (owner: string, taskId: string) => void): () => void {
    // One entry per call, so that the same function may listen twice.
    const entry = (owner: string, taskId: string) => listener(owner, taskId);
    this.listeners.add(entry);
    if (this.unwatch === undefined) this.startWatching();
    return () => {
      this.listeners.delete(entry);
      if (this.listeners.size > 0) return;
      this.unwatch?.();
      this.unwatch = undefined;
    };
  }

  async secret(): Promise<Uint8Array> {
    const value = randomBytes(32).toString("hex");
    return this.write(async (tx) => {
      await tx.run(
        this.build
          .insertInto("meta")
          .values({ name: "secret", value })
          .onConflict((oc) => oc.doNothing())
          .compile(),
      );
      const [row] = await tx.all(
        this.build.selectFrom("meta").select("value").where("name", "=", "secret").compile(),
      );
      return Buffer.from(row?.value ?? value, "hex");
    });
  }

  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    this.unwatch?.();
    this.listeners.clear();
    await this.db.close();
  }

  // ── changes of other processes ───────────────────────────────────────────────────────────────────────────────────

  private startWatching(): void {
    this.heardSeq = Number.POSITIVE_INFINITY;
    this.unwatch = this.db.watch(() => void this.hear());
    void this.hear();
  }

  /** Reads what the event log has gained, and tells whoever listens. */
  private async hear(): Promise<void> {
    if (this.closed) return;
    if (this.hearing) {
      this.hearAgain = true;
      return;
    }
    this.hearing = true;
    try {
      if (this.heardSeq === Number.POSITIVE_INFINITY) {
        const [last] = await this.all(
          this.build.selectFrom("events").select("seq").orderBy("seq", "desc").limit(1).compile(),
        );
        this.heardSeq = last?.seq ?? 0;
        return;
      }
      // Events that committed late hide below the last one seen: those are looked at once more.
      const from = this.heardSeq - (this.db.commitsOutOfOrder ? LATE_EVENTS : 0);
      const query = this.build
        .selectFrom("events")
        .select(["seq", "owner", "taskId"])
        .where("seq", ">", from);
      for (const { seq, owner, taskId } of await this.all(query.orderBy("seq").limit(1000).compile())) {
        const number = Number(seq);
        if (this.heard.has(number)) continue;
        this.heard.add(number);
        this.heardSeq = Math.max(this.heardSeq, number);
        this.tell(decodeName(owner), decodeName(taskId));
      }
      for (const seq of this.heard) if (seq <= this.heardSeq - LATE_EVENTS) this.heard.delete(seq);
    } catch {
      // The next change, or the next question of the task itself, brings it.
    } finally {
      this.hearing = false;
      if (this.hearAgain) {
        this.hearAgain = false;
        void this.hear();
      }
    }
  }

  private tell(owner: string, taskId: string): void {
    for (const listener of this.listeners) listener(owner, taskId);
  }

  // ── queries ──────────────────────────────────────────────────────────────────────────────────────────────────────

  /** A query compiled once for each shape: Kysely's builder costs more than running it. */
  private compiled<Row>(
    shape: string,
    make: () => CompiledQuery<Row>,
    parameters: readonly unknown[],
  ): CompiledQuery<Row> {
    const known = this.shapes.get(shape) as CompiledQuery<Row> | undefined;
    if (known !== undefined) return { ...known, parameters };
    const made = make();
    if (made.parameters.length === parameters.length) this.shapes.set(shape, made);
    return made;
  }

  private insertQuery(row: TaskRow): CompiledQuery<unknown> {
    const make = () => this.build.insertInto("tasks").values(row).compile();
    return this.compiled(`insert ${Object.keys(row).join()}`, make, Object.values(row));
  }

  private updateQuery(
    owner: string,
    taskId: string,
    version: number,
    changes: Partial<TaskRow>,
    release: string | undefined,
  ): CompiledQuery<TaskRow> {
    const make = () =>
      this.build
        .updateTable("tasks")
        .set({ ...changes, ...(release !== undefined && released(release)) })
        .where("owner", "=", owner)
        .where("taskId", "=", taskId)
        .where("version", "=", version)
        .returningAll()
        .compile();
    const lease = release === undefined ? [] : [release, release];
    const shape = `update ${Object.keys(changes).join()} ${lease.length}`;
    return this.compiled<TaskRow>(shape, make, [...Object.values(changes), ...lease, owner, taskId, version]);
  }

  private questionsQuery(owner: string, taskId: string) {
    return this.ofTask(this.build.selectFrom("questions").selectAll(), owner, taskId)
      .orderBy("position")
      .compile();
  }

  private ofTask<Query extends { where(column: "owner" | "taskId", op: "=", value: string): Query }>(
    query: Query,
    owner: string,
    taskId: string,
  ): Query {
    return query.where("owner", "=", owner).where("taskId", "=", taskId);
  }

  private async append(
    tx: Executor,
    owner: string,
    taskId: string,
    events: readonly TaskEvent[],
    at: number,
  ): Promise<void> {
    if (events.length === 0) return;
    const rows = events.map(({ type, detail }) => ({
      at,
      owner,
      taskId,
      type,
      detail: detail === undefined ? null : JSON.stringify(detail),
    }));
    await tx.run(
      this.build
        .insertInto("events")
        .values(rows as EventRow[])
        .compile(),
    );
  }

  /** Sequence numbers grow with time, so old events are at the beginning; the last one stays, or its number would come again. */
  private async forget(tx: Executor, before: number): Promise<number> {
    const ends = this.build.selectFrom("events").select("seq").orderBy("seq").limit(1);
    const [kept] = await tx.all(ends.where("at", ">=", before).compile());
    const [last] = await tx.all(
      this.build.selectFrom("events").select("seq").orderBy("seq", "desc").limit(1).compile(),
    );
    const until = kept?.seq ?? last?.seq;
    if (until === undefined) return 0;
    return tx.run(this.build.deleteFrom("events").where("seq", "<", until).compile());
  }

  private async bury(
    tx: Executor,
    owner: string,
    taskId: string,
    reason: Tombstone,
    at: number,
    event: TaskEvent,
  ): Promise<boolean> {
    if ((await tx.run(this.ofTask(this.build.deleteFrom("tasks"), owner, taskId).compile())) === 0)
      return false;
    await tx.run(this.ofTask(this.build.deleteFrom("questions"), owner, taskId).compile());
    const stone = { owner, taskId, reason, at };
    await tx.run(
      this.build
        .insertInto("tombstones")
        .values(stone)
        .onConflict((oc) => oc.columns(["owner", "taskId"]).doUpdateSet({ reason, at }))
        .compile(),
    );
    await this.append(tx, owner, taskId, [event], at);
    return true;
  }

  private async first(query: CompiledQuery<TaskRow>): Promise<Task | undefined> {
    const row = await this.guarded(() => this.db.first(query));
    return row === undefined ? undefined : toTask(row);
  }

  private all<Row>(query: CompiledQuery<Row>): Promise<Row[]> {
    return this.guarded(() => this.db.all(query));
  }

  private write<T>(work: (tx: Executor) => Promise<T>, durable = true): Promise<T> {
    return this.guarded(() => this.db.write(work, durable));
  }

  private async guarded<T>(work: () => Promise<T>): Promise<T> {
    if (this.closed) throw new WorkflowError("closed", "The task store is closed");
    try {
      return await work();
    } catch (error) {
      throw isWorkflowError(error) ? error : this.db.explain(error);
    }
  }
}

function differs(task: Task, patch: TaskPatch, field: (typeof VISIBLE)[number]): boolean {
  return field in patch && JSON.stringify(patch[field]) !== JSON.stringify(task[field]);
}

/** Gives a lease back, unless it has been lost to another holder. */
function released(holder: string) {
  return {
    leaseHolder: sql<string | null>`CASE WHEN "leaseHolder" = ${holder} THEN NULL ELSE "leaseHolder" END`,
    leaseUntil: sql<number | null>`CASE WHEN "leaseHolder" = ${holder} THEN NULL ELSE "leaseUntil" END`,
  };
}

function refuseIllegal(task: Task, patch: TaskPatch): void {
  const ended = isTerminal(task.status);
  const status = patch.status ?? task.status;
  if (!mayBecome(task.status, status)) {
    throw new WorkflowError("illegal_transition", `A task that is ${task.status} may not become ${status}`);
  }
  if (ended && ("outcome" in patch || "endedAt" in patch)) {
    throw new WorkflowError(
      "illegal_transition",
      `A task that is ${task.status} does not change its outcome`,
    );
  }
}

function toEvent(row: EventRow): StoredEvent {
  return {
    seq: Number(row.seq),
    at: row.at,
    owner: decodeName(row.owner),
    taskId: decodeName(row.taskId),
    type: row.type,
    ...(row.detail !== null && { detail: JSON.parse(row.detail) }),
  };
}
