/** The writes that every task goes through, compiled once for each set of columns. */
import type { CompiledQuery, ExpressionBuilder } from "kysely";
import type { QueryBuilder } from "./query-builder.js";
import type { Tables } from "./tables.js";
import type { TaskRow } from "./task-table.js";

/** Kysely's builder costs more than running what it makes. */
export class TaskWrites {
  private readonly shapes = new Map<string, CompiledQuery>();

  constructor(private readonly build: () => QueryBuilder) {}

  insert(row: TaskRow): CompiledQuery<unknown> {
    const make = () => this.build().insertInto("tasks").values(row).compile();
    return this.compiled(`insert ${Object.keys(row).join()}`, make, Object.values(row));
  }

  clearTombstone(owner: string, taskId: string): CompiledQuery<unknown> {
    const make = () =>
      this.build().deleteFrom("tombstones").where("owner", "=", owner).where("taskId", "=", taskId).compile();
    return this.compiled("clear tombstone", make, [owner, taskId]);
  }

  /** @param release whose lease is given back, unless it has been lost to another holder */
  update(
    task: { readonly owner: string; readonly taskId: string; readonly version: number },
    changes: Partial<TaskRow>,
    release: string | undefined,
  ): CompiledQuery<TaskRow> {
    const { owner, taskId, version } = task;
    const make = () =>
      this.build()
        .updateTable("tasks")
        .set((eb) => ({ ...changes, ...(release !== undefined && released(eb, release)) }))
        .where("owner", "=", owner)
        .where("taskId", "=", taskId)
        .where("version", "=", version)
        .returningAll()
        .compile();
    const lease = release === undefined ? [] : [release, release];
    const shape = `update ${Object.keys(changes).join()} ${lease.length}`;
    return this.compiled<TaskRow>(shape, make, [...Object.values(changes), ...lease, owner, taskId, version]);
  }

  private compiled<Row>(
    shape: string,
    make: () => CompiledQuery<Row>,
    parameters: readonly unknown[],
  ): CompiledQuery<Row> {
    const known = this.shapes.get(shape) as CompiledQuery<Row> | undefined;
    if (known !== undefined) return { ...known, parameters };
    const made = make();
    this.shapes.set(shape, made);
    return made;
  }
}

function released(eb: ExpressionBuilder<Tables, "tasks">, holder: string) {
  const unlessLost = <Column extends "leaseHolder" | "leaseUntil">(column: Column) =>
    eb.case().when("leaseHolder", "=", holder).then(null).else(eb.ref(column)).end();
  return { leaseHolder: unlessLost("leaseHolder"), leaseUntil: unlessLost("leaseUntil") };
}
