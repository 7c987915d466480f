/**
 * The mapping table: one row says which client's task is which native run. It is all that Taskferry knows about a task;
 * whatever the process that made it held in memory may be lost. Who may change a column when: `ARCHITECTURE.md`.
 */
import { canonicalJson, type Json, type JsonObject } from "../contract/json.js";
import type { Task, TaskOutcome, TaskStatus } from "../contract/task.js";
import { decodeOrNull, decodeText, encodeText, parseOrNull } from "./text.js";

/**
 * Columns are the task's own names (`Task` in `contract/task.ts` says what each means), so that a row needs no table of
 * translations. JSON is text in both databases; times are epoch milliseconds.
 */
export interface TaskRow {
  // Whose task: the key of the table.
  owner: string;
  taskId: string;

  // What was asked, and how. Never changes.
  generation: string;
  method: string;
  workflow: string;
  request: string;
  input: string;
  idempotencyKey: string | null;
  requestHash: string;
  requestId: string | null;
  connection: string | null;
  createdAt: number;
  retentionMs: number;

  // Which native run it is.
  engine: string;
  startKey: string;
  runRef: string | null;
  runUrl: string | null;
  claim: string | null;
  attempt: number | null;

  // How far its start is.
  startPhase: string;
  startAttempts: number;
  firstStartAt: number | null;
  lastStartAt: number | null;
  boundAt: number | null;

  // What the client is told.
  status: string;
  message: string | null;
  progress: string | null;
  outcome: string | null;
  updatedAt: number;
  endedAt: number | null;
  expiresAt: number | null;

  // What the engine said last, and when it is asked again.
  native: string | null;
  seen: number;
  lastReadAt: number | null;
  nextReadAt: number;
  readFailures: number;
  failingSince: number | null;

  // The stop that the client asked for, and that the engine is owed.
  cancelRequestedAt: number | null;
  cancelConfirmedAt: number | null;
  stopAttempts: number;

  // Who works on it, and when somebody must.
  dueAt: number | null;
  leaseHolder: string | null;
  leaseUntil: number | null;
  version: number;
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
    message: decodeOrNull(row.message),
    progress: parseOrNull<Task["progress"]>(row.progress),
    outcome: parseOrNull<TaskOutcome>(row.outcome),
    request: JSON.parse(row.request) as JsonObject,
    input: JSON.parse(row.input) as Json,
    idempotencyKey: decodeOrNull(row.idempotencyKey),
    runRef: parseOrNull<Json>(row.runRef),
    runUrl: decodeOrNull(row.runUrl),
    claim: decodeOrNull(row.claim),
    native: decodeOrNull(row.native),
    requestId: decodeOrNull(row.requestId),
    connection: decodeOrNull(row.connection),
    seen: row.seen === 1,
  };
}
