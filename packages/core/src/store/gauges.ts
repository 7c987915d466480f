/** Counts over all owners, for metrics. Each walks through an index of its own and looks at no row. */
import type { StoreContext } from "./store-context.js";
import type { TaskStore } from "./task-store.js";

export async function countByStatus(context: StoreContext): ReturnType<TaskStore["countByStatus"]> {
  const query = context.build
    .selectFrom("tasks")
    .select(["status", "engine", (eb) => eb.fn.countAll<number>().as("count")])
    .groupBy(["status", "engine"]);
  const rows = await context.all(query.compile());
  return rows.map((row) => ({ ...row, count: Number(row.count) }));
}

export async function owedCancels(context: StoreContext): ReturnType<TaskStore["owedCancels"]> {
  const query = context.build
    .selectFrom("tasks")
    .select((eb) => [
      "engine",
      eb.fn.countAll<number>().as("count"),
      eb.fn.min<number>("cancelRequestedAt").as("oldestAt"),
    ])
    .where("cancelRequestedAt", "is not", null)
    .where("cancelConfirmedAt", "is", null)
    .groupBy("engine");
  const rows = await context.all(query.compile());
  return rows.map(({ engine, count, oldestAt }) => ({
    engine,
    count: Number(count),
    oldestAt: Number(oldestAt),
  }));
}
