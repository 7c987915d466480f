/** What a change of a task's questions writes. */
import type { CompiledQuery, Kysely } from "kysely";
import type { QuestionRow, Tables } from "./schema.js";
import type { QuestionChanges } from "./task-store.js";

/** @param stored all rows of the task, oldest first */
export function questionWrites(
  build: Kysely<Tables>,
  owner: string,
  taskId: string,
  stored: readonly QuestionRow[],
  changes: QuestionChanges,
  now: number,
): CompiledQuery<unknown>[] {
  const writes: CompiledQuery<unknown>[] = [];
  const set = (key: string, values: Partial<QuestionRow>) => {
    const query = build
      .updateTable("questions")
      .set(values)
      .where("owner", "=", owner)
      .where("taskId", "=", taskId);
    writes.push(query.where("key", "=", key).compile());
  };
  const byKey = new Map(stored.map((row) => [row.key, row]));

  for (const [key, answer] of Object.entries(changes.answers ?? {})) {
    if (byKey.get(key)?.state === "open") {
      set(key, {
        state: "answered",
        answer: JSON.stringify(answer),
        answeredAt: now,
        askHolder: null,
        askUntil: null,
      });
    }
  }
  for (const key of changes.delivered ?? []) set(key, { state: "delivered", deliveredAt: now });
  for (const key of changes.gone ?? []) set(key, { state: "gone" });
  if (changes.open === undefined) return writes;

  const open = new Set(changes.open.map((question) => question.key));
  for (const row of stored) if (row.state === "open" && !open.has(row.key)) set(row.key, { state: "gone" });
  let position = stored.length;
  for (const question of changes.open) {
    // A key that was ever asked is never opened again.
    if (byKey.has(question.key)) continue;
    byKey.set(question.key, {} as QuestionRow);
    const { key, kind = "form", message, schema, url, request } = question;
    const row: QuestionRow = {
      owner,
      taskId,
      key,
      position: position++,
      kind,
      message,
      schema: schema === undefined ? null : JSON.stringify(schema),
      url: url ?? null,
      request: request === undefined ? null : JSON.stringify(request),
      state: "open",
      answer: null,
      askedAt: now,
      answeredAt: null,
      deliveredAt: null,
      askHolder: null,
      askUntil: null,
    };
    writes.push(build.insertInto("questions").values(row).compile());
  }
  return writes;
}
