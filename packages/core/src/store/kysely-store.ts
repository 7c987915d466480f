/** The task store over Kysely, for any database behind {@link Database}. */
import type { CompiledQuery } from "kysely";
import { WorkflowError } from "../contract/errors.js";
import { isTerminal, mayBecome, type StoredQuestion, type Task } from "../contract/task.js";
import { ChangeFeed } from "./change-feed.js";
import type { Database, Executor } from "./database.js";
import { toEvent } from "./event-log.js";
import { countByStatus, owedCancels } from "./gauges.js";
import { Leases } from "./leases.js";
import type { QueryBuilder } from "./query-builder.js";
import { questionWrites } from "./question-writes.js";
import { bury, sweep } from "./removal.js";
import { ofTask, StoreContext } from "./store-context.js";
import { toQuestion } from "./tables.js";
import type {
  InsertOptions,
  KnownEvent,
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
import { type TaskRow, toColumns, toTask } from "./task-table.js";
import { TaskWrites } from "./task-writes.js";
import { encodeText } from "./text.js";

/** Fields whose change somebody may be waiting for. */
const VISIBLE = ["status", "message", "progress", "outcome", "runUrl", "failingSince"] as const;

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
  private readonly context: StoreContext;
  private readonly feed: ChangeFeed;
  private readonly leases: Leases;
  private readonly writes: TaskWrites;
  /** Compiled once: polling is the hot path, and Kysely's builder costs more than the query itself. */
  private getQuery: CompiledQuery<TaskRow> | undefined;

  constructor(db: Database, builder: () => QueryBuilder) {
    this.context = new StoreContext(db, builder);
    this.feed = new ChangeFeed(this.context);
    this.leases = new Leases(this.context);
    this.writes = new TaskWrites(builder);
  }

  async insert(task: NewTask, events: readonly TaskEvent[], options: InsertOptions = {}): Promise<Task> {
    const { lease, atMost } = options;
    const held = { leaseHolder: lease?.holder ?? null, leaseUntil: lease?.until ?? null };
    const row = toColumns({ ...task, ...held, version: 1 }) as TaskRow;
    try {
      await this.context.write(async (tx) => {
        if (atMost !== undefined) await this.refuseBeyond(tx, row.owner, atMost);
        await tx.run(this.writes.insert(row));
        await tx.run(this.writes.clearTombstone(row.owner, row.taskId));
        await this.context.log.append(tx, row.owner, row.taskId, events, task.createdAt);
      });
    } catch (error) {
      throw await this.whyNotInserted(error, task);
    }
    this.feed.tell(task.owner, task.taskId);
    return toTask(row);
  }

  async get(owner: string, taskId: string): Promise<Task | undefined> {
    const parameters = [encodeText(owner), encodeText(taskId)];
    this.getQuery ??= ofTask(this.build.selectFrom("tasks").selectAll(), "", "").compile();
    const row = await this.context.first<TaskRow>({ ...this.getQuery, parameters });
    return row === undefined ? undefined : toTask(row);
  }

  findByIdempotencyKey(owner: string, key: string): Promise<Task | undefined> {
    const query = this.tasksOf(owner).where("idempotencyKey", "=", encodeText(key));
    return this.first(query.compile());
  }

  findByRequest(owner: string, connection: string, requestId: string): Promise<Task | undefined> {
    const query = this.tasksOf(owner)
      .where("connection", "=", encodeText(connection))
      .where("requestId", "=", encodeText(requestId));
    return this.first(query.orderBy("createdAt", "desc").limit(1).compile());
  }

  async list(owner: string, options: { after?: ListPosition; limit: number }): Promise<readonly Task[]> {
    const { after, limit } = options;
    let query = this.tasksOf(owner);
    if (after !== undefined) {
      const { createdAt } = after;
      const taskId = encodeText(after.taskId);
      // The first half alone is a range of the index; a row comparison cannot mix directions.
      query = query
        .where("createdAt", "<=", createdAt)
        .where((eb) => eb.or([eb("createdAt", "<", createdAt), eb("taskId", ">", taskId)]));
    }
    query = query.orderBy("createdAt", "desc").orderBy("taskId").limit(limit);
    return (await this.context.all(query.compile())).map(toTask);
  }

  async countActive(owner: string, upTo: number): Promise<number> {
    const counted = await this.context.first(this.activeQuery(encodeText(owner), upTo));
    return Number(counted?.count ?? 0);
  }

  countByStatus(): ReturnType<TaskStore["countByStatus"]> {
    return countByStatus(this.context);
  }

  owedCancels(): ReturnType<TaskStore["owedCancels"]> {
    return owedCancels(this.context);
  }

  async update(task: Task, patch: TaskPatch, options: UpdateOptions = {}): Promise<Task> {
    const now = options.now ?? Date.now();
    refuseIllegal(task, patch);
    const key = { owner: encodeText(task.owner), taskId: encodeText(task.taskId), version: task.version };
    const visible = options.questions !== undefined || VISIBLE.some((field) => differs(task, patch, field));
    const events = options.events ?? [];
    const told = events.length === 0 && visible ? [{ type: "task.changed" } satisfies KnownEvent] : events;
    const changes = toColumns({ ...patch, version: task.version + 1, ...(visible && { updatedAt: now }) });
    // Pacing may be lost in a power cut: then the engine is read once more than needed.
    const durable = told.length > 0 || Object.keys(patch).some((field) => !PACING.has(field));
    const row = await this.context
      .write(async (tx) => {
        const updated = await tx.first(this.writes.update(key, changes, options.release));
        if (updated === undefined) {
          throw new WorkflowError("stale_version", "The task has changed since it was read", {
            retryable: true,
          });
        }
        if (options.questions !== undefined) {
          const stored = await tx.all(this.questionsQuery(key.owner, key.taskId));
          for (const query of questionWrites(
            this.build,
            key.owner,
            key.taskId,
            stored,
            options.questions,
            now,
          ))
            await tx.run(query);
        }
        await this.context.log.append(tx, key.owner, key.taskId, told, now);
        return updated;
      }, durable)
      .catch((error: unknown) => {
        throw this.whyNotUpdated(error, patch);
      });
    if (visible) this.feed.tell(task.owner, task.taskId);
    return toTask(row);
  }

  async questions(owner: string, taskId: string): Promise<readonly StoredQuestion[]> {
    return (await this.context.all(this.questionsQuery(encodeText(owner), encodeText(taskId)))).map(
      toQuestion,
    );
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
      .where("claim", "=", encodeText(claim));
    const holder = await this.context.first(query.compile());
    if (holder === undefined) return false;
    return holder.owner !== encodeText(except.owner) || holder.taskId !== encodeText(except.taskId);
  }

  leaseQuestion(owner: string, taskId: string, key: string, lease: LeaseRequest): Promise<boolean> {
    return this.leases.takeQuestion(owner, taskId, key, lease);
  }

  releaseQuestion(owner: string, taskId: string, key: string, holder: string): Promise<void> {
    return this.leases.releaseQuestion(owner, taskId, key, holder);
  }

  lease(owner: string, taskId: string, lease: LeaseRequest): Promise<Task | undefined> {
    return this.leases.take(owner, taskId, lease);
  }

  leaseDue(lease: LeaseRequest & { workflows: readonly string[]; limit: number }): Promise<readonly Task[]> {
    return this.leases.takeDue(lease);
  }

  renewLease(owner: string, taskId: string, lease: LeaseRequest): Promise<boolean> {
    return this.leases.renew(owner, taskId, lease);
  }

  releaseLease(owner: string, taskId: string, holder: string): Promise<void> {
    return this.leases.release(owner, taskId, holder);
  }

  nextDue(workflows: readonly string[]): Promise<number | undefined> {
    return this.leases.nextDue(workflows);
  }

  async findByRun(engine: string, ref: string): Promise<readonly Task[]> {
    const query = this.build
      .selectFrom("tasks")
      .selectAll()
      .where("engine", "=", engine)
      .where("runRef", "=", ref);
    return (await this.context.all(query.compile())).map(toTask);
  }

  async remove(
    owner: string,
    taskId: string,
    tombstone: Tombstone,
    now: number,
    event: TaskEvent,
  ): Promise<boolean> {
    const task = { owner: encodeText(owner), taskId: encodeText(taskId) };
    const removed = await this.context.write((tx) => bury(this.context, tx, task, tombstone, now, event));
    if (removed) this.feed.tell(owner, taskId);
    return removed;
  }

  async tombstone(owner: string, taskId: string): Promise<Tombstone | undefined> {
    const stones = this.build.selectFrom("tombstones").select("reason");
    const query = ofTask(stones, encodeText(owner), encodeText(taskId));
    return (await this.context.first(query.compile()))?.reason as Tombstone | undefined;
  }

  async sweep(
    options: Parameters<TaskStore["sweep"]>[0],
  ): Promise<{ tasks: number; tombstones: number; events: number }> {
    const swept = await sweep(this.context, options);
    for (const { owner, taskId } of swept.tasks) this.feed.tell(owner, taskId);
    return { ...swept, tasks: swept.tasks.length };
  }

  async events(options: {
    after?: number;
    owner?: string;
    taskId?: string;
    limit: number;
  }): Promise<readonly StoredEvent[]> {
    const { after = 0, owner, taskId, limit } = options;
    let query = this.build.selectFrom("events").selectAll().where("seq", ">", after);
    if (owner !== undefined) query = query.where("owner", "=", encodeText(owner));
    if (taskId !== undefined) query = query.where("taskId", "=", encodeText(taskId));
    return (await this.context.all(query.orderBy("seq").limit(limit).compile())).map(toEvent);
  }

  async record(owner: string, taskId: string, events: readonly TaskEvent[], now: number): Promise<void> {
    const [storedOwner, storedId] = [encodeText(owner), encodeText(taskId)];
    await this.context.write((tx) => this.context.log.append(tx, storedOwner, storedId, events, now));
  }

  onChange(listener: (owner: string, taskId: string) => void): () => void {
    return this.feed.listen(listener);
  }

  async secret(): Promise<Uint8Array> {
    const secret = await this.context.meta("secret");
    if (secret === undefined) throw new WorkflowError("store_unavailable", "The store lost its secret");
    return Buffer.from(secret, "hex");
  }

  close(): Promise<void> {
    this.feed.close();
    return this.context.close();
  }

  private async refuseBeyond(tx: Executor, owner: string, atMost: number): Promise<void> {
    await this.context.db.alone(tx, owner);
    const counted = await tx.first(this.activeQuery(owner, atMost));
    if (Number(counted?.count ?? 0) < atMost) return;
    throw new WorkflowError("limit_exceeded", `The owner has ${atMost} tasks already`, { retryable: true });
  }

  private activeQuery(owner: string, upTo: number): CompiledQuery<{ count: number }> {
    // Ends at the bound: what is beyond it makes no difference.
    const active = this.build
      .selectFrom("tasks")
      .select("owner")
      .where("owner", "=", owner)
      .where((eb) =>
        eb.or([
          eb("endedAt", "is", null),
          eb.and([eb("cancelRequestedAt", "is not", null), eb("cancelConfirmedAt", "is", null)]),
        ]),
      )
      .limit(upTo);
    return this.build
      .selectFrom(active.as("active"))
      .select((eb) => eb.fn.countAll<number>().as("count"))
      .compile();
  }

  private get build(): QueryBuilder {
    return this.context.build;
  }

  private tasksOf(owner: string) {
    return this.build.selectFrom("tasks").selectAll().where("owner", "=", encodeText(owner));
  }

  private questionsQuery(owner: string, taskId: string) {
    return ofTask(this.build.selectFrom("questions").selectAll(), owner, taskId)
      .orderBy("position")
      .compile();
  }

  private async first(query: CompiledQuery<TaskRow>): Promise<Task | undefined> {
    const row = await this.context.first(query);
    return row === undefined ? undefined : toTask(row);
  }

  private async whyNotInserted(error: unknown, task: NewTask): Promise<unknown> {
    const violated = this.context.db.violated(error);
    if (violated === "pk") return new WorkflowError("task_exists", `Task ID already exists: ${task.taskId}`);
    if (violated === "claim") return claimed(task.claim);
    if (violated !== "idempotency" || task.idempotencyKey === null) return error;
    const holder = await this.findByIdempotencyKey(task.owner, task.idempotencyKey);
    return new WorkflowError("idempotency_conflict", "The idempotency key is taken", {
      ...(holder !== undefined && { data: { taskId: holder.taskId } }),
    });
  }

  private whyNotUpdated(error: unknown, patch: TaskPatch): unknown {
    const violated = this.context.db.violated(error);
    if (violated === "claim") return claimed(patch.claim);
    // The row says so, whatever the caller believes to have read.
    if (violated === "ended")
      return new WorkflowError("illegal_transition", "A task that has ended does not change its end");
    return error;
  }
}

function claimed(claim: string | null | undefined): WorkflowError {
  return new WorkflowError("task_exists", "Another task has claimed this run", { data: { claim } });
}

function differs(task: Task, patch: TaskPatch, field: (typeof VISIBLE)[number]): boolean {
  return field in patch && JSON.stringify(patch[field]) !== JSON.stringify(task[field]);
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
