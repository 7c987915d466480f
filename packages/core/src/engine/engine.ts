/** The task engine: what can be done with tasks, in no generation's words. */
import { randomUUID } from "node:crypto";
import { setMaxListeners } from "node:events";
import type { Answer, EventRequest, LogPage, Question } from "../contract/adapter.js";
import { isWorkflowError, WorkflowError } from "../contract/errors.js";
import { canonicalJson, isJsonObject, type JsonObject } from "../contract/json.js";
import type { Owner } from "../contract/owner.js";
import { checkAgainst } from "../contract/schema.js";
import { isTerminal, type StoredQuestion, type Task } from "../contract/task.js";
import { checkDuration, type Workflow } from "../contract/workflow.js";
import { TaskGauges } from "../observe/gauges.js";
import {
  type AuditEvent,
  audit,
  counters,
  idForLog,
  type Logger,
  noteEnd,
  SILENT,
  traced,
} from "../observe/observe.js";
import { PollMonitor } from "../observe/poll-monitor.js";
import type { KnownEvent, ListPosition, NewTask, TaskStore } from "../store/task-store.js";
import { askHook, BEFORE_PREFIX } from "./before.js";
import {
  type CreateCall,
  checkTaskId,
  newTask,
  type Prepared,
  type Retention,
  requestHashOf,
} from "./create.js";
import { Dispatcher } from "./dispatcher.js";
import { GuardedAdapter } from "./guard.js";
import { checkLimits, DEFAULT_LIMITS, type LimitedOperation, Limiter, type Limits } from "./limits.js";
import type { ServedWorkflow } from "./pending.js";
import { asOpen, checkAnswers } from "./questions.js";
import { ending } from "./reconcile.js";
import { Recovery } from "./recovery.js";
import { Refresher } from "./refresh.js";
import { seal, unseal } from "./signed-token.js";
import { withTimeout } from "./timeout.js";
import { DEFAULT_TIMING, type Timing } from "./timing.js";
import { type Rows, type TaskChange, updateTask } from "./update.js";

export interface TaskEngineOptions {
  readonly workflows: readonly Workflow[];
  readonly store: TaskStore;
  readonly retention?: Partial<Retention>;
  readonly limits?: Partial<Limits>;
  readonly timing?: Partial<Timing>;
  /** Anything with pino's methods. @default silent */
  readonly log?: Logger;
}

/** A task with what there is to show of it. */
export interface TaskView {
  readonly task: Task;
  /** All questions ever asked; empty while there are none open. */
  readonly questions: readonly StoredQuestion[];
  readonly pollMs: number;
}

/** Workflows, a store, and everything that is done between them. Make one per process with {@link createTaskEngine}. */
export class TaskEngine {
  readonly workflows: ReadonlyMap<string, Workflow>;
  readonly limits: Limits;
  readonly retention: Retention;
  readonly timing: Timing;
  readonly log: Logger;

  private readonly store: TaskStore;
  private readonly served: ReadonlyMap<string, ServedWorkflow>;
  private readonly limiter: Limiter;
  private readonly dispatcher: Dispatcher;
  private readonly refresher: Refresher;
  private readonly recovery: Recovery;
  private readonly gauges: TaskGauges;
  private readonly pollMonitor: PollMonitor;
  private readonly rows: Rows;
  private readonly shutdown = new AbortController();
  private readonly holder = randomUUID();
  private readonly secret: Uint8Array;
  private closing: Promise<void> | undefined;

  /** Use {@link createTaskEngine}. */
  constructor(options: TaskEngineOptions, secret: Uint8Array) {
    checkLimits(options.limits ?? {});
    this.store = options.store;
    this.secret = secret;
    this.log = options.log ?? SILENT;
    this.timing = { ...DEFAULT_TIMING, ...options.timing };
    this.limits = { ...DEFAULT_LIMITS, ...options.limits };
    this.retention = { defaultMs: 3_600_000, maxMs: 604_800_000, ...options.retention };
    checkDuration(this.retention.defaultMs, "retention.defaultMs");
    checkDuration(this.retention.maxMs, "retention.maxMs");
    const { startDeadlineMs: startMs, readDeadlineMs: readMs, stopDeadlineMs: stopMs } = this.timing;
    const served = new Map<string, ServedWorkflow>();
    for (const workflow of options.workflows) {
      if (served.has(workflow.name)) {
        throw new WorkflowError(
          "configuration",
          `Two workflows are named "${workflow.name}"; names must be unique`,
        );
      }
      const adapter = new GuardedAdapter(workflow.adapter, { startMs, readMs, stopMs }, this.shutdown.signal);
      served.set(workflow.name, { workflow, adapter });
    }
    this.served = served;
    this.workflows = new Map([...served].map(([name, { workflow }]) => [name, workflow]));
    const { store, timing, log, holder } = this;
    this.rows = { store, log };
    this.limiter = new Limiter(this.limits, store, log);
    this.dispatcher = new Dispatcher({ store, served, holder, timing, log });
    this.refresher = new Refresher(store, this.dispatcher, timing);
    this.pollMonitor = new PollMonitor(log);
    const engines = [...new Set([...served.values()].map(({ adapter }) => adapter.engine))];
    this.gauges = new TaskGauges({ store, engines, log });
    this.recovery = new Recovery({
      store,
      gauges: this.gauges,
      dispatcher: this.dispatcher,
      workflows: [...served.keys()],
      holder,
      timing,
      log,
    });
    // Every native call listens for it.
    setMaxListeners(0, this.shutdown.signal);
    this.recovery.start();
  }

  // ── making tasks ─────────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Writes the task, starts its run, and answers from the row at the latest after `startWaitMs`.
   * @throws WorkflowError `unknown_workflow`, `invalid_arguments`, `invalid_request`, `limit_exceeded`, `task_exists`,
   *   `idempotency_conflict`; and whatever `ask` throws.
   */
  async create(call: CreateCall): Promise<TaskView> {
    const { workflow } = this.servedBy(call.workflow);
    return traced(
      "taskferry.create",
      () => ({ "taskferry.workflow": workflow.name }),
      async (span) => {
        const args = checkAgainst(
          workflow.input,
          call.arguments ?? {},
          "invalid_arguments",
          `arguments for "${workflow.name}"`,
        );
        const requestHash = requestHashOf(workflow, args);
        const earlier = await this.earlierCall(call, requestHash);
        if (earlier !== undefined) return this.view(earlier);
        if (call.taskId !== undefined) checkTaskId(call.taskId);
        await this.limiter.take(call.owner, "create");

        const prepared = await this.prepare(workflow, args, call);
        const atMost = await this.limiter.admit(call.owner);
        const row = newTask(
          call,
          workflow,
          { arguments: args, requestHash, ...prepared },
          this.retention,
          this.timing.leaseMs,
        );
        if (span.isRecording()) span.setAttribute("taskferry.task", idForLog(row.taskId));
        let task: Task;
        try {
          task = await this.insert(row, prepared.hold, atMost);
        } catch (error) {
          const code = isWorkflowError(error) ? error.code : undefined;
          const isFull = code === "limit_exceeded";
          // Lost a race against the same idempotency key: the winner's task is the answer, though it was the last.
          const winner =
            (isFull || code === "idempotency_conflict") && (await this.earlierCall(call, requestHash));
          if (winner) return this.view(winner);
          if (isFull) throw this.limiter.tooMany(call.owner);
          throw error;
        }
        counters.created.add(1, { engine: task.engine, generation: task.generation });
        this.audit("task.created", task);
        if (isTerminal(task.status)) noteEnd(this.log, task);
        if (task.startPhase !== "attempted") return this.view(task);
        const begun = await withTimeout(this.dispatcher.begin(task), this.timing.startWaitMs);
        return this.view(begun ?? (await this.store.get(task.owner, task.taskId)) ?? task);
      },
    );
  }

  private async earlierCall(call: CreateCall, requestHash: string): Promise<Task | undefined> {
    if (call.idempotencyKey === undefined) return undefined;
    checkTaskId(call.idempotencyKey, "idempotency key");
    const earlier = await this.store.findByIdempotencyKey(call.owner.id, call.idempotencyKey);
    if (earlier === undefined) return undefined;
    if (earlier.requestHash === requestHash) return earlier;
    throw new WorkflowError(
      "idempotency_conflict",
      "This idempotency key was used for another request. Use a new key for a new request.",
    );
  }

  /** Plays the `before` hook as far as the client can be asked now. */
  private async prepare(workflow: Workflow, args: JsonObject, call: CreateCall): Promise<Prepared> {
    let answers: Readonly<Record<string, Answer>> = {};
    for (let round = 0; round < 20; round++) {
      const verdict = await askHook(workflow, args, answers);
      if ("proceed" in verdict) return { input: verdict.arguments ?? args };
      if ("refuse" in verdict) return { input: args, refuse: verdict.refuse };
      // The hook is pure, so it is played again from the start; answers the client has brought along come first.
      const brought = verdict.ask.every(({ key }) => Object.hasOwn(call.answers ?? {}, key));
      const given = brought ? call.answers : await call.ask?.(verdict.ask);
      if (given === undefined) return { input: args, hold: verdict.ask };
      answers = { ...answers, ...checkAnswers(verdict.ask.map(asOpen), given) };
    }
    throw new WorkflowError("engine_rejected", `The check before "${workflow.name}" asks without end`);
  }

  private async insert(
    row: NewTask,
    hold: readonly Question[] | undefined,
    atMost: number | undefined,
  ): Promise<Task> {
    const limit = atMost !== undefined && { atMost };
    const created: KnownEvent = {
      type: "task.created",
      detail: { workflow: row.workflow, engine: row.engine },
    };
    if (hold === undefined) {
      const { startPhase, createdAt: now } = row;
      if (startPhase === "none") return this.store.insert(row, [created], { ...limit });
      const lease = { holder: this.holder, now, until: now + this.timing.leaseMs };
      return this.store.insert(row, [created, { type: "run.starting" }], { ...limit, lease });
    }
    const task = await this.store.insert(row, [created], { ...limit });
    const open = hold.map((question) => ({ ...question, key: BEFORE_PREFIX + question.key }));
    return this.store.update(task, { status: "input_required" }, { questions: { open }, now: row.createdAt });
  }

  // ── reading tasks ────────────────────────────────────────────────────────────────────────────────────────────────

  /** The task as fresh as its pace allows. @throws WorkflowError `task_not_found`, `task_expired`, `limit_exceeded` */
  async get(
    owner: Owner,
    taskId: string,
    counted: LimitedOperation | "uncounted" = "get",
  ): Promise<TaskView> {
    return traced("taskferry.get", about(taskId), async () => {
      if (counted !== "uncounted") await this.limiter.take(owner, counted);
      const task = await this.row(owner, taskId);
      if (counted === "get") this.pollMonitor.note(owner, taskId, this.pollMsOf(task));
      return this.view(await this.refresher.poll(task));
    });
  }

  /** The task as it is stored; no native read. @throws as `get` */
  async peek(owner: Owner, taskId: string): Promise<TaskView> {
    return this.view(await this.row(owner, taskId));
  }

  /**
   * Waits until `done` says so, `timeoutMs` have passed or the signal aborts, and gives the task as it is then.
   * @throws as `get`; `limit_exceeded` when too many of this owner's requests wait already
   */
  async wait(
    owner: Owner,
    taskId: string,
    done: (view: TaskView) => boolean,
    options: {
      readonly signal?: AbortSignal;
      readonly timeoutMs?: number;
      readonly onChange?: (view: TaskView) => void;
    } = {},
  ): Promise<TaskView> {
    const release = this.limiter.block(owner);
    let wake: () => void = () => {};
    const unsubscribe = this.subscribe(owner, taskId, () => wake());
    const until = options.timeoutMs === undefined ? Infinity : Date.now() + options.timeoutMs;
    try {
      for (;;) {
        const woken = new Promise<void>((resolve) => {
          wake = resolve;
        });
        // Who was there when it ended hears how, even if nothing was to be kept.
        const view = await this.view(await this.row(owner, taskId, "expired too"));
        options.onChange?.(view);
        const left = until - Date.now();
        if (done(view) || isTerminal(view.task.status) || left <= 0 || options.signal?.aborted === true)
          return view;
        await interruptible(woken, Math.min(left, 30_000), options.signal);
      }
    } finally {
      unsubscribe();
      release();
    }
  }

  /** Calls back when the task may have changed, and keeps it read at its pace meanwhile. @returns ends both */
  subscribe(owner: Owner, taskId: string, listener: () => void): () => void {
    const unlisten = this.listen(owner, taskId, listener);
    const unwatch = this.refresher.watch(owner.id, taskId);
    return () => {
      unlisten();
      unwatch();
    };
  }

  /** Calls back when the task may have changed; nothing is read for its sake. @returns ends it */
  listen(owner: Owner, taskId: string, listener: () => void): () => void {
    return this.store.onChange((changedOwner, changedId) => {
      if (changedId === taskId && changedOwner === owner.id) listener();
    });
  }

  /** One page, newest first. @throws WorkflowError `invalid_cursor`, `limit_exceeded` */
  async list(
    owner: Owner,
    cursor: string | undefined,
    limit = 50,
  ): Promise<{ readonly views: readonly TaskView[]; readonly nextCursor?: string }> {
    await this.limiter.take(owner, "list");
    const after = cursor === undefined ? undefined : this.openCursor(owner, cursor);
    const rows = await this.store.list(owner.id, { limit: limit + 1, ...(after !== undefined && { after }) });
    const page = rows.slice(0, limit).filter((task) => !hasExpired(task));
    const last = rows[limit - 1];
    return {
      views: await Promise.all(page.map((task) => this.view(task))),
      ...(rows.length > limit &&
        last !== undefined && {
          nextCursor: seal(this.secret, "list", owner.id, [last.createdAt, last.taskId]),
        }),
    };
  }

  private openCursor(owner: Owner, cursor: string): ListPosition {
    const position = unseal(this.secret, "list", owner.id, cursor);
    if (!Array.isArray(position)) {
      throw new WorkflowError(
        "invalid_cursor",
        "Invalid cursor: pass nextCursor of an earlier page back unchanged, or none",
      );
    }
    return { createdAt: position[0] as number, taskId: position[1] as string };
  }

  // ── changing tasks ───────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Takes answers to open questions; unknown and answered keys are ignored.
   * @throws WorkflowError `invalid_arguments` if an answer does not fit its question; the question stays open
   */
  answer(owner: Owner, taskId: string, answers: Readonly<Record<string, unknown>>): Promise<TaskView> {
    return traced("taskferry.answer", about(taskId), () => this.takeAnswers(owner, taskId, answers));
  }

  private async takeAnswers(
    owner: Owner,
    taskId: string,
    answers: Readonly<Record<string, unknown>>,
  ): Promise<TaskView> {
    await this.limiter.take(owner, "result");
    const change = async (task: Task) => {
      const stored = await this.store.questions(owner.id, taskId);
      const accepted = checkAnswers(stored, answers);
      const keys = Object.keys(accepted);
      if (keys.length === 0 || isTerminal(task.status)) return undefined;
      const stillOpen = stored.some((question) => question.state === "open" && !(question.key in accepted));
      return {
        patch: {
          nextReadAt: Date.now(),
          dueAt: Date.now(),
          ...(!stillOpen && task.status === "input_required" && { status: "working" as const }),
        },
        questions: { answers: accepted },
        events: keys.map((key) => ({ type: "question.answered" as const, detail: { key } })),
      };
    };
    const task = await this.change(owner, taskId, change);
    // Whoever waits hears of the engine's reaction; the acknowledgement does not wait for it.
    void this.dispatcher.nudge(owner.id, taskId);
    return this.view(task);
  }

  /**
   * Stores the intent to cancel; the stop is owed until the engine confirms it or the run ends.
   * @param mode `now`: cancelled before this returns, and for ever (draft, 2025-11-25). `cooperative`: cancelled when
   *   the engine says so, or the true outcome (2026-07-28). A task that has ended is left as it is.
   */
  cancel(owner: Owner, taskId: string, mode: "now" | "cooperative"): Promise<TaskView> {
    return traced("taskferry.cancel", about(taskId), () => this.takeCancel(owner, taskId, mode));
  }

  private async takeCancel(owner: Owner, taskId: string, mode: "now" | "cooperative"): Promise<TaskView> {
    await this.limiter.take(owner, "result");
    const task = await this.change(owner, taskId, async (fresh) => {
      if (isTerminal(fresh.status)) return undefined;
      const now = Date.now();
      const unstarted = fresh.startPhase === "held" || fresh.startPhase === "owed";
      const asked = { cancelRequestedAt: fresh.cancelRequestedAt ?? now };
      const request = { type: "cancel.requested" as const, detail: { mode } };
      if (mode === "cooperative" && !unstarted) {
        return { patch: { ...asked, dueAt: now, nextReadAt: now }, events: [request] };
      }
      const end = ending(
        fresh,
        asked,
        "cancelled",
        { kind: "cancelled" },
        { native: fresh.native ?? "" },
        now,
      );
      const owed = { cancelConfirmedAt: null, dueAt: now, nextReadAt: now };
      const patch = {
        ...end.patch,
        ...(unstarted ? { startPhase: "none" as const, cancelConfirmedAt: now } : owed),
      };
      return { patch, questions: { open: [] }, events: [request, ...end.events] };
    });
    void this.dispatcher.nudge(owner.id, taskId);
    return this.view(task);
  }

  /** Cancels the draft task that a JSON-RPC request of a connection made. Nothing happens if there is none. */
  async cancelByRequest(owner: Owner, connection: string, requestId: string): Promise<void> {
    const task = await this.store.findByRequest(owner.id, connection, requestId);
    if (task !== undefined && task.generation === "draft") await this.cancel(owner, task.taskId, "now");
  }

  /**
   * Deletes a task that has ended, with everything that was stored of it.
   * @throws WorkflowError `not_supported` while it runs, or while a stop is owed to its engine
   */
  remove(owner: Owner, taskId: string): Promise<void> {
    return traced("taskferry.remove", about(taskId), () => this.removeEnded(owner, taskId));
  }

  private async removeEnded(owner: Owner, taskId: string): Promise<void> {
    await this.limiter.take(owner, "result");
    const task = await this.row(owner, taskId);
    if (!isTerminal(task.status)) {
      throw new WorkflowError(
        "not_supported",
        `A task that is ${task.status} cannot be deleted: cancel it first`,
      );
    }
    if (task.cancelRequestedAt !== null && task.cancelConfirmedAt === null) {
      throw new WorkflowError(
        "not_supported",
        "The task's engine has not confirmed its stop yet: delete it a little later",
        {
          retryable: true,
        },
      );
    }
    await this.store.remove(owner.id, taskId, "deleted", Date.now(), { type: "task.deleted" });
    this.audit("task.deleted", task);
  }

  /** Reads a page of the run's log. @throws WorkflowError `not_supported` if the engine gives none or nothing runs yet */
  async logs(owner: Owner, taskId: string, cursor?: string): Promise<LogPage> {
    await this.limiter.take(owner, "get");
    const task = await this.row(owner, taskId);
    const { workflow, adapter } = this.servedBy(task.workflow);
    if (workflow.adapter.logs === undefined)
      throw new WorkflowError("not_supported", `${task.engine} gives no logs`);
    if (task.runRef === null)
      throw new WorkflowError("not_supported", "The run has not started yet", { retryable: true });
    return adapter.logs(task.runRef, cursor);
  }

  /**
   * Takes a webhook or event delivery for a workflow's engine and reads the runs again that it is about.
   * @returns how many tasks were concerned @throws if the delivery is not authentic
   */
  receive(workflowName: string, request: Omit<EventRequest, "signal">): Promise<number> {
    const { workflow, adapter } = this.servedBy(workflowName);
    return traced(
      "taskferry.receive",
      () => ({ "taskferry.workflow": workflow.name }),
      async () => {
        let concerned = 0;
        for (const ref of await adapter.events(request)) {
          for (const task of await this.store.findByRun(adapter.engine, canonicalJson(ref))) {
            concerned += 1;
            const now = Date.now();
            const hinted = (fresh: Task) =>
              isTerminal(fresh.status) ? undefined : { patch: { nextReadAt: now, dueAt: now }, events: [] };
            await updateTask(this.rows, task, hinted);
            void this.dispatcher.nudge(task.owner, task.taskId);
          }
        }
        return concerned;
      },
    );
  }

  /** Holds one of the owner's places for requests that wait. @returns gives it back @throws WorkflowError `limit_exceeded` */
  hold(owner: Owner): () => void {
    return this.limiter.block(owner);
  }

  /** Whether the database answers. */
  async isReady(): Promise<boolean> {
    if (this.closing !== undefined) return false;
    return this.store.nextDue([]).then(
      () => true,
      () => false,
    );
  }

  /** Counts an event for the audit: who, what, which task; never what was said. */
  audit(event: AuditEvent, task: Pick<Task, "owner" | "taskId" | "workflow">): void {
    audit(this.log, event, task);
  }

  /** Signs a state that a client carries for us. */
  seal(purpose: string, owner: Owner, payload: JsonObject): string {
    return seal(this.secret, purpose, owner.id, payload);
  }

  unseal(purpose: string, owner: Owner, token: string): JsonObject | undefined {
    const payload = unseal(this.secret, purpose, owner.id, token);
    return isJsonObject(payload) ? payload : undefined;
  }

  /** Takes (or renews) the right to ask a client an open question; one asks at a time, over all processes. */
  leaseQuestion(owner: Owner, taskId: string, key: string, holder: string, forMs: number): Promise<boolean> {
    const now = Date.now();
    return this.store.leaseQuestion(owner.id, taskId, key, { holder, now, until: now + forMs });
  }

  releaseQuestion(owner: Owner, taskId: string, key: string, holder: string): Promise<void> {
    return this.store.releaseQuestion(owner.id, taskId, key, holder);
  }

  /** Stops looking for work, lets calls in flight end for `drainMs`, gives every lease back and closes the store. Runs go on. */
  close(): Promise<void> {
    this.closing ??= this.closeOnce();
    return this.closing;
  }

  private async closeOnce(): Promise<void> {
    this.recovery.stop();
    this.gauges.close();
    this.refresher.close();
    await this.dispatcher.drain(this.timing.drainMs, () => this.shutdown.abort());
    for (const { adapter } of this.served.values()) await adapter.close().catch(() => {});
    await this.store.close();
  }

  // ── rows ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  private servedBy(workflow: string): ServedWorkflow {
    const served = this.served.get(workflow);
    if (served === undefined)
      throw new WorkflowError("unknown_workflow", `There is no workflow "${workflow}" here`);
    return served;
  }

  private async row(owner: Owner, taskId: string, which?: "expired too"): Promise<Task> {
    const task = await this.store.get(owner.id, taskId);
    if (task !== undefined && (which === "expired too" || !hasExpired(task))) return task;
    const gone = task !== undefined ? "expired" : await this.store.tombstone(owner.id, taskId);
    counters.failedLookups.add(1, {});
    this.log.debug({ owner: idForLog(owner.id), task: idForLog(taskId) }, "task.lookup_failed");
    await this.limiter.missed(owner);
    if (gone === "expired") throw new WorkflowError("task_expired", "Task has expired");
    throw new WorkflowError("task_not_found", "Task not found");
  }

  private async view(task: Task): Promise<TaskView> {
    const pollMs = this.pollMsOf(task);
    // Questions are looked up only where some may be open: the hot path is one read.
    const asked = task.status === "input_required";
    return { task, pollMs, questions: asked ? await this.store.questions(task.owner, task.taskId) : [] };
  }

  private pollMsOf(task: Task): number {
    return this.workflows.get(task.workflow)?.pollMs ?? 5_000;
  }

  private async change(
    owner: Owner,
    taskId: string,
    compute: (fresh: Task) => Promise<TaskChange | undefined>,
  ): Promise<Task> {
    return updateTask(this.rows, await this.row(owner, taskId), compute);
  }
}

/** Opens what the store keeps, and starts looking for owed work. @throws WorkflowError `configuration`, `store_unavailable` */
export async function createTaskEngine(options: TaskEngineOptions): Promise<TaskEngine> {
  if (!Array.isArray(options.workflows)) {
    throw new WorkflowError("configuration", "An engine needs workflows: [defineWorkflow(…)]");
  }
  if (typeof options.store?.secret !== "function") {
    throw new WorkflowError(
      "configuration",
      "An engine needs an open store: await sqliteStore(…) or postgresStore(…)",
    );
  }
  return new TaskEngine(options, await options.store.secret());
}

/** How spans name a task. */
function about(taskId: string): () => { "taskferry.task": string } {
  return () => ({ "taskferry.task": idForLog(taskId) });
}

function hasExpired(task: Task): boolean {
  return task.expiresAt !== null && task.expiresAt <= Date.now();
}

async function interruptible(
  woken: Promise<void>,
  limitMs: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  let onAbort: (() => void) | undefined;
  const aborted = new Promise<void>((resolve) => {
    onAbort = () => resolve();
    signal?.addEventListener("abort", onAbort, { once: true });
  });
  await withTimeout(Promise.race([woken, aborted]), limitMs);
  if (onAbort !== undefined) signal?.removeEventListener("abort", onAbort);
}
