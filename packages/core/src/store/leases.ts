/** Leases on tasks and on open questions: who works, among all processes on the database. */
import type { Task } from "../contract/task.js";
import { ofTask, type StoreContext } from "./store-context.js";
import type { LeaseRequest } from "./task-store.js";
import { type TaskRow, toTask } from "./task-table.js";
import { encodeText } from "./text.js";

/** A lease that is lost in a power cut was held by a process that is gone with it: none of these waits for the disk. */
const DURABLE = false;
/** Workflows asked about in one statement; SQLite takes no more than 500 parts. */
const MOST_AT_ONCE = 100;

export class Leases {
  constructor(private readonly context: StoreContext) {}

  async take(owner: string, taskId: string, { holder, now, until }: LeaseRequest): Promise<Task | undefined> {
    const query = this.task(owner, taskId, { leaseHolder: holder, leaseUntil: until })
      .where((eb) =>
        eb.or([eb("leaseHolder", "is", null), eb("leaseHolder", "=", holder), eb("leaseUntil", "<=", now)]),
      )
      .returningAll();
    const row = await this.context.write((tx) => tx.first(query.compile()), DURABLE);
    return row === undefined ? undefined : toTask(row as TaskRow);
  }

  async takeDue(
    request: LeaseRequest & { readonly workflows: readonly string[]; readonly limit: number },
  ): Promise<readonly Task[]> {
    const { holder, now, until, limit } = request;
    if (limit <= 0) return [];
    // Nothing due is the usual case: it must not take the write lock.
    const workflows = await this.workflowsWithDue([...new Set(request.workflows)], now);
    if (workflows.length === 0) return [];
    return this.context.write(async (tx) => {
      const seen: { workflow: string; dueAt: number | null }[] = [];
      for (const workflow of workflows)
        seen.push(...(await tx.all(this.oldestDue(workflow, now, limit).compile())));
      seen.sort((a, b) => Number(a.dueAt) - Number(b.dueAt));
      const shares = new Map<string, number>();
      for (const { workflow } of seen.slice(0, limit)) shares.set(workflow, (shares.get(workflow) ?? 0) + 1);

      const leased: Task[] = [];
      for (const [workflow, share] of shares) {
        // Locks no more than are taken: others pass over those, and take the next.
        const own = this.oldestDue(workflow, now, share);
        const rows = await tx.all(
          (this.context.db.skipLocked ? own.forUpdate().skipLocked() : own).compile(),
        );
        for (const { owner, taskId } of rows) {
          const query = ofTask(
            this.context.build.updateTable("tasks").set({ leaseHolder: holder, leaseUntil: until }),
            owner,
            taskId,
          );
          const row = await tx.first(query.returningAll().compile());
          if (row !== undefined) leased.push(toTask(row as TaskRow));
        }
      }
      return leased.sort((a, b) => Number(a.dueAt) - Number(b.dueAt));
    }, DURABLE);
  }

  async renew(owner: string, taskId: string, { holder, until }: LeaseRequest): Promise<boolean> {
    const query = this.task(owner, taskId, { leaseUntil: until }).where("leaseHolder", "=", holder);
    return (await this.context.write((tx) => tx.run(query.compile()), DURABLE)) > 0;
  }

  async release(owner: string, taskId: string, holder: string): Promise<void> {
    const free = { leaseHolder: null, leaseUntil: null };
    const query = this.task(owner, taskId, free).where("leaseHolder", "=", holder);
    await this.context.write((tx) => tx.run(query.compile()), DURABLE);
  }

  async nextDue(workflows: readonly string[]): Promise<number | undefined> {
    const due = this.context.build.selectFrom("tasks").select("dueAt").where("dueAt", "is not", null);
    // Also without workflows: whether the database answers is what a health check wants to know.
    if (workflows.length === 0) await this.context.first(due.limit(1).compile());
    let next: number | undefined;
    for (const workflow of workflows) {
      const query = due.where("workflow", "=", workflow).orderBy("dueAt").limit(1);
      const dueAt = (await this.context.first(query.compile()))?.dueAt ?? undefined;
      if (dueAt !== undefined) next = Math.min(next ?? dueAt, dueAt);
    }
    return next;
  }

  async takeQuestion(
    owner: string,
    taskId: string,
    key: string,
    { holder, now, until }: LeaseRequest,
  ): Promise<boolean> {
    const query = this.question(owner, taskId, key, { askHolder: holder, askUntil: until })
      .where("state", "=", "open")
      .where((eb) =>
        eb.or([eb("askHolder", "is", null), eb("askHolder", "=", holder), eb("askUntil", "<=", now)]),
      );
    return (await this.context.write((tx) => tx.run(query.compile()), DURABLE)) > 0;
  }

  async releaseQuestion(owner: string, taskId: string, key: string, holder: string): Promise<void> {
    const query = this.question(owner, taskId, key, { askHolder: null, askUntil: null });
    await this.context.write((tx) => tx.run(query.where("askHolder", "=", holder).compile()), DURABLE);
  }

  /**
   * The beginning of one index range, however much is due. The order is what makes it so: without it, PostgreSQL hopes
   * to come across a due row soon and walks through all tasks.
   */
  private oldestDue(workflow: string, now: number, limit: number) {
    return this.context.build
      .selectFrom("tasks")
      .select(["owner", "taskId", "workflow", "dueAt"])
      .where("workflow", "=", workflow)
      .where("dueAt", "<=", now)
      .where((eb) => eb.or([eb("leaseHolder", "is", null), eb("leaseUntil", "<=", now)]))
      .orderBy("dueAt")
      .limit(limit);
  }

  private async workflowsWithDue(workflows: readonly string[], now: number): Promise<readonly string[]> {
    const found: string[] = [];
    for (let at = 0; at < workflows.length; at += MOST_AT_ONCE) {
      const [first, ...others] = workflows
        .slice(at, at + MOST_AT_ONCE)
        .map((name) =>
          this.context.build.selectFrom(this.oldestDue(name, now, 1).as("due")).select("workflow"),
        );
      if (first === undefined) break;
      const query = others.reduce((all, each) => all.unionAll(each), first);
      for (const { workflow } of await this.context.all(query.compile())) found.push(workflow);
    }
    return found;
  }

  private task(
    owner: string,
    taskId: string,
    values: { readonly leaseHolder?: string | null; readonly leaseUntil: number | null },
  ) {
    const query = this.context.build.updateTable("tasks").set(values);
    return ofTask(query, encodeText(owner), encodeText(taskId));
  }

  private question(
    owner: string,
    taskId: string,
    key: string,
    values: { readonly askHolder: string | null; readonly askUntil: number | null },
  ) {
    const query = this.context.build.updateTable("questions").set(values);
    return ofTask(query, encodeText(owner), encodeText(taskId)).where("key", "=", encodeText(key));
  }
}
