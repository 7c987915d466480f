/** The append-only event log. Names as they are stored, but for {@link toEvent}. */
import type { CompiledQuery } from "kysely";
import type { Executor } from "./database.js";
import type { QueryBuilder } from "./query-builder.js";
import type { EventRow } from "./tables.js";
import type { StoredEvent, TaskEvent } from "./task-store.js";
import { decodeText } from "./text.js";

export class EventLog {
  /** One for each number of events: they come with every write, and Kysely's builder costs more than running them. */
  private readonly inserts = new Map<number, CompiledQuery<unknown>>();

  constructor(private readonly build: () => QueryBuilder) {}

  async append(
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
    await tx.run({ ...this.insert(rows), parameters: rows.flatMap((row) => Object.values(row)) });
  }

  /** Sequence numbers grow with time, so old events are at the beginning; the last one stays, or its number would come again. */
  async forget(tx: Executor, before: number): Promise<number> {
    const seqs = this.build().selectFrom("events").select("seq").limit(1);
    const kept = await tx.first(seqs.where("at", ">=", before).orderBy("seq").compile());
    const last = await tx.first(seqs.orderBy("seq", "desc").compile());
    const until = kept?.seq ?? last?.seq;
    if (until === undefined) return 0;
    return tx.run(this.build().deleteFrom("events").where("seq", "<", until).compile());
  }

  private insert(rows: readonly Omit<EventRow, "seq">[]): CompiledQuery<unknown> {
    const known = this.inserts.get(rows.length);
    if (known !== undefined) return known;
    // The database counts `seq` itself.
    const made = this.build()
      .insertInto("events")
      .values(rows as EventRow[])
      .compile();
    // Long lists are rare: they must not stay in memory.
    if (rows.length <= 4) this.inserts.set(rows.length, made);
    return made;
  }
}

export function toEvent(row: EventRow): StoredEvent {
  return {
    seq: row.seq,
    at: row.at,
    owner: decodeText(row.owner),
    taskId: decodeText(row.taskId),
    type: row.type,
    ...(row.detail !== null && { detail: JSON.parse(row.detail) }),
  };
}
