/** The tables, and how rows become tasks and back. One schema for both databases; JSON is text in both. */
import type { Answer } from "../contract/adapter.js";
import type { Json, JsonObject } from "../contract/json.js";
import { canonicalJson } from "../contract/json.js";
import type { QuestionState, StoredQuestion, Task, TaskOutcome, TaskStatus } from "../contract/task.js";
import { decodeText, encodeText } from "./text.js";

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

const JSON_COLUMNS: ReadonlySet<string> = new Set(["progress", "outcome", "request", "input"]);

/** Columns that hold words of clients, engines and connections: see {@link encodeText}. */
const STRANGE_COLUMNS: ReadonlySet<string> = new Set([
  "owner",
  "taskId",
  "message",
  "idempotencyKey",
  "runUrl",
  "claim",
  "native",
  "requestId",
  "connection",
]);

/** Any part of a task, as columns. */
export function toColumns(task: Partial<Task>): Partial<TaskRow> {
  const columns: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(task)) {
    if (value === undefined) continue;
    if (name === "runRef") columns[name] = value === null ? null : canonicalJson(value as Json);
    else if (JSON_COLUMNS.has(name))
      columns[name] = value === null && name !== "input" ? null : JSON.stringify(value);
    else if (STRANGE_COLUMNS.has(name)) columns[name] = value === null ? null : encodeText(value as string);
    else if (name === "seen") columns[name] = value === true ? 1 : 0;
    // SQLite would keep half a millisecond, PostgreSQL would refuse it.
    else columns[name] = typeof value === "number" ? Math.round(value) : value;
  }
  return columns as Partial<TaskRow>;
}

export function toTask(row: TaskRow): Task {
  return {
    ...row,
    owner: decodeText(row.owner),
    taskId: decodeText(row.taskId),
    generation: row.generation as Task["generation"],
    method: row.method as Task["method"],
    status: row.status as TaskStatus,
    startPhase: row.startPhase as Task["startPhase"],
    message: decode(row.message),
    progress: parse<Task["progress"]>(row.progress),
    outcome: parse<TaskOutcome>(row.outcome),
    request: JSON.parse(row.request) as JsonObject,
    input: JSON.parse(row.input) as Json,
    idempotencyKey: decode(row.idempotencyKey),
    runRef: parse<Json>(row.runRef),
    runUrl: decode(row.runUrl),
    claim: decode(row.claim),
    native: decode(row.native),
    requestId: decode(row.requestId),
    connection: decode(row.connection),
    seen: row.seen === 1,
  };
}

export function toQuestion(row: QuestionRow): StoredQuestion {
  const { askedAt, answeredAt, deliveredAt, askHolder, askUntil } = row;
  return {
    key: decodeText(row.key),
    kind: row.kind as StoredQuestion["kind"],
    message: decodeText(row.message),
    schema: parse<JsonObject>(row.schema),
    url: decode(row.url),
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

function decode(text: string | null): string | null {
  return text === null ? null : decodeText(text);
}

function parse<T>(text: string | null): T | null {
  return text === null ? null : (JSON.parse(text) as T);
}
