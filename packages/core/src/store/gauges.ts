/** Counts over all owners, for metrics. Each walks through an index of its own and looks at no row. */
import type { Access } from "./access.js";
import type { TaskStore } from "./task-store.js";

export async function countByStatus(access: Access): ReturnType<TaskStore["countByStatus"]> {
  const query = access.build
    .selectFrom("tasks")
    .select(["status", "engine", (eb) => eb.fn.countAll<number>().as("count")])
    .groupBy(["status", "engine"]);
  const rows = await access.all(query.compile());
  return rows.map((row) => ({ ...row, count: Number(row.count) }));
}

export async function owedCancels(access: Access): ReturnType<TaskStore["owedCancels"]> {
  const query = access.build
    .selectFrom("tasks")
    .select((eb) => [
      "engine",
      eb.fn.countAll<number>().as("count"),
      eb.fn.min<number>("cancelRequestedAt").as("oldestAt"),
    ])
    .where("cancelRequestedAt", "is not", null)
    .where("cancelConfirmedAt", "is", null)
    .groupBy("engine");
  const rows = await access.all(query.compile());
  return rows.map(({ engine, count, oldestAt }) => ({
    engine,
    count: Number(count),
    oldestAt: Number(oldestAt),
  }));
}
