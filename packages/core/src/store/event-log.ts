/** The append-only event log. Names as they are stored, but for {@link toEvent}. */
import type { Kysely } from "kysely";
import type { EventRow, Tables } from "./schema.js";
import type { Executor } from "./statements.js";
import type { StoredEvent, TaskEvent } from "./task-store.js";
import { decodeText } from "./text.js";

export async function appendEvents(
  build: Kysely<Tables>,
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
  // The database counts `seq` itself.
  const query = build.insertInto("events").values(rows as EventRow[]);
  await tx.run(query.compile());
}

/** Sequence numbers grow with time, so old events are at the beginning; the last one stays, or its number would come again. */
export async function forgetEvents(build: Kysely<Tables>, tx: Executor, before: number): Promise<number> {
  const seqs = build.selectFrom("events").select("seq").limit(1);
  const kept = await tx.first(seqs.where("at", ">=", before).orderBy("seq").compile());
  const last = await tx.first(seqs.orderBy("seq", "desc").compile());
  const until = kept?.seq ?? last?.seq;
  if (until === undefined) return 0;
  return tx.run(build.deleteFrom("events").where("seq", "<", until).compile());
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
