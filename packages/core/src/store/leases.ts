/** Leases on tasks and on open questions: who works, among all processes on the database. */
import type { Task } from "../task.js";
import { type Access, ofTask } from "./access.js";
import { type TaskRow, toTask } from "./schema.js";
import type { LeaseRequest } from "./task-store.js";
import { encodeText } from "./text.js";

/** A lease that is lost in a power cut was held by a process that is gone with it: none of these waits for the disk. */
const DURABLE = false;

export class Leases {
  constructor(private readonly access: Access) {}

  async take(owner: string, taskId: string, { holder, now, until }: LeaseRequest): Promise<Task | undefined> {
    const query = this.task(owner, taskId, { leaseHolder: holder, leaseUntil: until })
      .where((eb) =>
        eb.or([eb("leaseHolder", "is", null), eb("leaseHolder", "=", holder), eb("leaseUntil", "<=", now)]),
      )
      .returningAll();
    const row = await this.access.write((tx) => tx.first(query.compile()), DURABLE);
    return row === undefined ? undefined : toTask(row as TaskRow);
  }

  async takeDue(
    request: LeaseRequest & { readonly workflows: readonly string[]; readonly limit: number },
  ): Promise<readonly Task[]> {
    const { holder, now, until, limit } = request;
    const workflows = [...new Set(request.workflows)];
    if (workflows.length === 0 || limit <= 0) return [];
    const due = this.access.build
      .selectFrom("tasks")
      .select(["owner", "taskId", "workflow", "dueAt"])
      .where("dueAt", "<=", now)
      .where((eb) => eb.or([eb("leaseHolder", "is", null), eb("leaseUntil", "<=", now)]));
    // Nothing due is the usual case: it must not take the write lock.
    const probe = due.where("workflow", "in", workflows).limit(1);
    if ((await this.access.first(probe.compile())) === undefined) return [];

    const oldest = (workflow: string, most: number) =>
      due.where("workflow", "=", workflow).orderBy("dueAt").limit(most);
    return this.access.write(async (tx) => {
      // Workflow by workflow, so that each is the beginning of an index range however much is due.
      const seen: { workflow: string; dueAt: number | null }[] = [];
      for (const workflow of workflows) seen.push(...(await tx.all(oldest(workflow, limit).compile())));
      seen.sort((a, b) => Number(a.dueAt) - Number(b.dueAt));
      const shares = new Map<string, number>();
      for (const { workflow } of seen.slice(0, limit)) shares.set(workflow, (shares.get(workflow) ?? 0) + 1);

      const leased: Task[] = [];
      for (const [workflow, share] of shares) {
        // Locks no more than are taken: others pass over those, and take the next.
        const own = oldest(workflow, share);
        const rows = await tx.all((this.access.db.skipLocked ? own.forUpdate().skipLocked() : own).compile());
        for (const { owner, taskId } of rows) {
          const query = ofTask(
            this.access.build.updateTable("tasks").set({ leaseHolder: holder, leaseUntil: until }),
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
    return (await this.access.write((tx) => tx.run(query.compile()), DURABLE)) > 0;
  }

  async release(owner: string, taskId: string, holder: string): Promise<void> {
    const free = { leaseHolder: null, leaseUntil: null };
    const query = this.task(owner, taskId, free).where("leaseHolder", "=", holder);
    await this.access.write((tx) => tx.run(query.compile()), DURABLE);
  }

  async nextDue(workflows: readonly string[]): Promise<number | undefined> {
    const due = this.access.build.selectFrom("tasks").select("dueAt").where("dueAt", "is not", null);
    // Also without workflows: whether the database answers is what a health check wants to know.
    if (workflows.length === 0) await this.access.first(due.limit(1).compile());
    let next: number | undefined;
    for (const workflow of workflows) {
      const query = due.where("workflow", "=", workflow).orderBy("dueAt").limit(1);
      const dueAt = (await this.access.first(query.compile()))?.dueAt ?? undefined;
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
    return (await this.access.write((tx) => tx.run(query.compile()), DURABLE)) > 0;
  }

  async releaseQuestion(owner: string, taskId: string, key: string, holder: string): Promise<void> {
    const query = this.question(owner, taskId, key, { askHolder: null, askUntil: null });
    await this.access.write((tx) => tx.run(query.where("askHolder", "=", holder).compile()), DURABLE);
  }

  private task(
    owner: string,
    taskId: string,
    values: { readonly leaseHolder?: string | null; readonly leaseUntil: number | null },
  ) {
    const query = this.access.build.updateTable("tasks").set(values);
    return ofTask(query, encodeText(owner), encodeText(taskId));
  }

  private question(
    owner: string,
    taskId: string,
    key: string,
    values: { readonly askHolder: string | null; readonly askUntil: number | null },
  ) {
    const query = this.access.build.updateTable("questions").set(values);
    return ofTask(query, encodeText(owner), encodeText(taskId)).where("key", "=", encodeText(key));
  }
}
