/** The tables, and how rows become tasks and back. One schema for both databases; JSON is text in both. */
import type { Answer } from "../adapter.js";
import type { Json, JsonObject } from "../json.js";
import { canonicalJson } from "../json.js";
import type { QuestionState, StoredQuestion, Task, TaskOutcome, TaskStatus } from "../task.js";

/** Columns are the task's own names, so that a row needs no table of translations; JSON columns hold text. */
export interface TaskRow {
  owner: string;
  taskId: string;
  generation: string;
  method: string;
  workflow: string;
  engine: string;
  status: string;
  message: string | null;
  progress: string | null;
  outcome: string | null;
  request: string;
  input: string;
  idempotencyKey: string | null;
  requestHash: string;
  startKey: string;
  startPhase: string;
  startAttempts: number;
  firstStartAt: number | null;
  lastStartAt: number | null;
  boundAt: number | null;
  runRef: string | null;
  runUrl: string | null;
  claim: string | null;
  native: string | null;
  attempt: number | null;
  seen: number;
  cancelRequestedAt: number | null;
  cancelConfirmedAt: number | null;
  stopAttempts: number;
  retentionMs: number;
  createdAt: number;
  updatedAt: number;
  endedAt: number | null;
  expiresAt: number | null;
  requestId: string | null;
  connection: string | null;
  version: number;
  nextReadAt: number;
  dueAt: number | null;
  lastReadAt: number | null;
  readFailures: number;
  failingSince: number | null;
  leaseHolder: string | null;
  leaseUntil: number | null;
}

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

const JSON_COLUMNS = new Set(["progress", "outcome", "request", "input"]);

/** Names that the database may not be able to hold (NUL, lone surrogates) are stored as their UTF-16 code units. */
const ESCAPE = "\u0001";

/** Reversible: two different names never become one. */
export function encodeName(name: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: NUL is what PostgreSQL refuses
  if (name.isWellFormed() && !/\u0000/.test(name) && !name.startsWith(ESCAPE)) return name;
  return (
    ESCAPE +
    Array.from({ length: name.length }, (_, i) => name.charCodeAt(i).toString(16).padStart(4, "0")).join("")
  );
}

export function decodeName(stored: string): string {
  if (!stored.startsWith(ESCAPE)) return stored;
  const units = stored.slice(1).match(/.{4}/g) ?? [];
  return String.fromCharCode(...units.map((unit) => Number.parseInt(unit, 16)));
}

/** Any part of a task, as columns. */
export function toColumns(task: Partial<Task>): Partial<TaskRow> {
  const columns: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(task)) {
    if (name === "runRef") columns[name] = value === null ? null : canonicalJson(value as Json);
    else if (JSON_COLUMNS.has(name))
      columns[name] = value === null && name !== "input" ? null : JSON.stringify(value);
    else if (name === "owner" || name === "taskId") columns[name] = encodeName(value as string);
    else if (name === "seen") columns[name] = value === true ? 1 : 0;
    else columns[name] = value;
  }
  return columns as Partial<TaskRow>;
}

export function toTask(row: TaskRow): Task {
  return {
    ...row,
    owner: decodeName(row.owner),
    taskId: decodeName(row.taskId),
    generation: row.generation as Task["generation"],
    method: row.method as Task["method"],
    status: row.status as TaskStatus,
    startPhase: row.startPhase as Task["startPhase"],
    progress: parse<Task["progress"]>(row.progress),
    outcome: parse<TaskOutcome>(row.outcome),
    request: JSON.parse(row.request) as JsonObject,
    input: JSON.parse(row.input) as Json,
    runRef: parse<Json>(row.runRef),
    seen: row.seen === 1,
  };
}

export function toQuestion(row: QuestionRow): StoredQuestion {
  const { key, message, url, askedAt, answeredAt, deliveredAt, askHolder, askUntil } = row;
  return {
    key,
    kind: row.kind as StoredQuestion["kind"],
    message,
    schema: parse<JsonObject>(row.schema),
    url,
    request: parse<JsonObject>(row.request),
    state: row.state as QuestionState,
    answer: parse<Answer>(row.answer),
    askedAt,
    answeredAt,
    deliveredAt,
    askHolder,
    askUntil,
  };
}

function parse<T>(text: string | null): T | null {
  return text === null ? null : (JSON.parse(text) as T);
}
