/** All tables: tasks (in `task-table.ts`), and what hangs on them. One schema for both databases, made by `migrations.ts`. */
import type { Answer } from "../contract/adapter.js";
import type { JsonObject } from "../contract/json.js";
import type { QuestionState, StoredQuestion } from "../contract/task.js";
import type { TaskRow } from "./task-table.js";
import { decodeOrNull, decodeText, parseOrNull } from "./text.js";

export interface QuestionRow {
  owner: string;
  taskId: string;
  key: string;
  position: number;
  kind: string;
  message: string;
  schema: string | null;
  url: string | null;
  request: string | null;
  state: string;
  answer: string | null;
  askedAt: number;
  answeredAt: number | null;
  deliveredAt: number | null;
  askHolder: string | null;
  askUntil: number | null;
}

export interface EventRow {
  seq: number;
  at: number;
  owner: string;
  taskId: string;
  type: string;
  detail: string | null;
}

export interface Tables {
  tasks: TaskRow;
  questions: QuestionRow;
  events: EventRow;
  tombstones: { owner: string; taskId: string; reason: string; at: number };
  meta: { name: string; value: string };
}

export function toQuestion(row: QuestionRow): StoredQuestion {
  const { askedAt, answeredAt, deliveredAt, askHolder, askUntil } = row;
  return {
    key: decodeText(row.key),
    kind: row.kind as StoredQuestion["kind"],
    message: decodeText(row.message),
    schema: parseOrNull<JsonObject>(row.schema),
    url: decodeOrNull(row.url),
    request: parseOrNull<JsonObject>(row.request),
    state: row.state as QuestionState,
    answer: parseOrNull<Answer>(row.answer),
    askedAt,
    answeredAt,
    deliveredAt,
    askHolder,
    askUntil,
  };
}
