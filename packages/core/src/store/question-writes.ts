/** What a change of a task's questions writes. */
import type { CompiledQuery } from "kysely";
import type { QuestionState } from "../contract/task.js";
import type { QueryBuilder } from "./query-builder.js";
import type { QuestionRow } from "./tables.js";
import type { QuestionChanges } from "./task-store.js";
import { decodeText, encodeText } from "./text.js";

/** @param stored all rows of the task, oldest first */
export function questionWrites(
  build: QueryBuilder,
  owner: string,
  taskId: string,
  stored: readonly QuestionRow[],
  changes: QuestionChanges,
  now: number,
): CompiledQuery<unknown>[] {
  const writes: CompiledQuery<unknown>[] = [];
  // As they are after the writes so far: an answer that comes with the end of its question is kept, not gone.
  const states = new Map(stored.map((row) => [decodeText(row.key), row.state as QuestionState]));
  const set = (key: string, values: Partial<QuestionRow> & { readonly state: QuestionState }) => {
    const query = build
      .updateTable("questions")
      .set(values)
      .where("owner", "=", owner)
      .where("taskId", "=", taskId);
    writes.push(query.where("key", "=", encodeText(key)).compile());
    states.set(key, values.state);
  };

  for (const [key, answer] of Object.entries(changes.answers ?? {})) {
    if (states.get(key) === "open") {
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
  for (const key of changes.gone ?? []) if (states.get(key) !== "delivered") set(key, { state: "gone" });
  if (changes.open === undefined) return writes;

  const open = new Set(changes.open.map((question) => question.key));
  for (const [key, state] of states) if (state === "open" && !open.has(key)) set(key, { state: "gone" });
  let position = stored.length;
  for (const question of changes.open) {
    // A key that was ever asked is never opened again.
    if (states.has(question.key)) continue;
    states.set(question.key, "open");
    const { key, kind = "form", message, schema, url, request } = question;
    const row: QuestionRow = {
      owner,
      taskId,
      key: encodeText(key),
      position: position++,
      kind,
      message: encodeText(message),
      schema: schema === undefined ? null : JSON.stringify(schema),
      url: url === undefined ? null : encodeText(url),
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
