/** How tasks leave the database: one by one, or because their time has come. */

import type { Executor } from "./database.js";
import { ofTask, type StoreContext } from "./store-context.js";
import type { TaskEvent, TaskStore, Tombstone } from "./task-store.js";
import { decodeText } from "./text.js";

type SweepOptions = Parameters<TaskStore["sweep"]>[0];

/** What a sweep has removed, with the tasks' names as callers know them. */
export interface Swept {
  readonly tasks: readonly { readonly owner: string; readonly taskId: string }[];
  readonly tombstones: number;
  readonly events: number;
}

/** Deletes a task with its questions and leaves a tombstone. Names as they are stored. @returns whether it was there */
export async function bury(
  { build, log }: StoreContext,
  tx: Executor,
  task: { readonly owner: string; readonly taskId: string },
  reason: Tombstone,
  at: number,
  event: TaskEvent,
): Promise<boolean> {
  const { owner, taskId } = task;
  if ((await tx.run(ofTask(build.deleteFrom("tasks"), owner, taskId).compile())) === 0) return false;
  await tx.run(ofTask(build.deleteFrom("questions"), owner, taskId).compile());
  const stone = build
    .insertInto("tombstones")
    .values({ owner, taskId, reason, at })
    .onConflict((oc) => oc.columns(["owner", "taskId"]).doUpdateSet({ reason, at }));
  await tx.run(stone.compile());
  await log.append(tx, owner, taskId, [event], at);
  return true;
}

export function sweep(context: StoreContext, options: SweepOptions): Promise<Swept> {
  const { now, limit, tombstonesBefore, eventsBefore } = options;
  const { build, db, log } = context;
  let expired = build
    .selectFrom("tasks")
    .select(["owner", "taskId"])
    .where("expiresAt", "<=", now)
    .where((eb) => eb.or([eb("cancelRequestedAt", "is", null), eb("cancelConfirmedAt", "is not", null)]))
    .orderBy("expiresAt")
    .limit(limit);
  if (db.skipLocked) expired = expired.forUpdate().skipLocked();
  return context.write(async (tx) => {
    const tasks: { owner: string; taskId: string }[] = [];
    for (const task of await tx.all(expired.compile())) {
      if (!(await bury(context, tx, task, "expired", now, { type: "task.expired" }))) continue;
      tasks.push({ owner: decodeText(task.owner), taskId: decodeText(task.taskId) });
    }
    const old = build.deleteFrom("tombstones").where("at", "<", tombstonesBefore);
    const tombstones = await tx.run(old.compile());
    const events = await log.forget(tx, eventsBefore);
    return { tasks, tombstones, events };
  });
}
