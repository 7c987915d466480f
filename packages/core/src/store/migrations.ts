/** Versioned migrations: the same steps for both databases, with the few words in which they differ. */
import { randomBytes } from "node:crypto";
import { WorkflowError } from "../contract/errors.js";

/** Words of a dialect. */
export interface DialectWords {
  /** An integer key that counts up by itself. */
  readonly serial: string;
  /** A 64-bit integer: epoch milliseconds. */
  readonly integer: string;
  /** Indexes for looking tasks up by texts of any length: by request of a connection, and by native run. */
  readonly lookups: readonly string[];
  /** Statements that refuse an update of the append-only event log, and any change of an ended task's end. */
  readonly guards: readonly string[];
}

/** When the row that a trigger looks at has ended, even if its writer forgot one of the two. */
export const ENDED_ROW = `(OLD."endedAt" IS NOT NULL OR OLD."status" IN ('completed', 'failed', 'cancelled', 'unknown'))`;
/** What the guard of ended rows says: {@link Database.violated} knows it by these words. */
export const ENDED_MESSAGE = "an ended task never changes";

/** Each entry takes the database from its index to the next version. Never edit one that has been released. */
export const MIGRATIONS: readonly ((words: DialectWords) => readonly string[])[] = [
  ({ serial, integer, lookups, guards }) => [
    `CREATE TABLE tasks (
      "owner" TEXT NOT NULL, "taskId" TEXT NOT NULL, "generation" TEXT NOT NULL, "method" TEXT NOT NULL,
      "workflow" TEXT NOT NULL, "engine" TEXT NOT NULL, "status" TEXT NOT NULL, "message" TEXT, "progress" TEXT,
      "outcome" TEXT, "request" TEXT NOT NULL, "input" TEXT NOT NULL, "idempotencyKey" TEXT, "requestHash" TEXT NOT NULL,
      "startKey" TEXT NOT NULL, "startPhase" TEXT NOT NULL, "startAttempts" INTEGER NOT NULL,
      "firstStartAt" ${integer}, "lastStartAt" ${integer}, "boundAt" ${integer}, "runRef" TEXT, "runUrl" TEXT, "claim" TEXT, "native" TEXT,
      "attempt" INTEGER, "seen" INTEGER NOT NULL, "cancelRequestedAt" ${integer}, "cancelConfirmedAt" ${integer},
      "stopAttempts" INTEGER NOT NULL, "retentionMs" ${integer} NOT NULL, "createdAt" ${integer} NOT NULL,
      "updatedAt" ${integer} NOT NULL, "endedAt" ${integer}, "expiresAt" ${integer}, "requestId" TEXT, "connection" TEXT,
      "version" INTEGER NOT NULL, "nextReadAt" ${integer} NOT NULL, "dueAt" ${integer}, "lastReadAt" ${integer},
      "readFailures" INTEGER NOT NULL, "failingSince" ${integer}, "leaseHolder" TEXT, "leaseUntil" ${integer},
      PRIMARY KEY ("owner", "taskId"))`,
    `CREATE UNIQUE INDEX tasks_idempotency ON tasks ("owner", "idempotencyKey") WHERE "idempotencyKey" IS NOT NULL`,
    `CREATE UNIQUE INDEX tasks_claim ON tasks ("engine", "claim") WHERE "claim" IS NOT NULL`,
    `CREATE INDEX tasks_list ON tasks ("owner", "createdAt" DESC, "taskId")`,
    // By workflow first: what is due of workflows that other servers serve must not be walked through.
    `CREATE INDEX tasks_due ON tasks ("workflow", "dueAt") WHERE "dueAt" IS NOT NULL`,
    `CREATE INDEX tasks_expiry ON tasks ("expiresAt") WHERE "expiresAt" IS NOT NULL`,
    `CREATE INDEX tasks_active ON tasks ("owner") WHERE "endedAt" IS NULL OR ("cancelRequestedAt" IS NOT NULL AND "cancelConfirmedAt" IS NULL)`,
    ...lookups,
    `CREATE TABLE questions (
      "owner" TEXT NOT NULL, "taskId" TEXT NOT NULL, "key" TEXT NOT NULL, "position" INTEGER NOT NULL, "kind" TEXT NOT NULL,
      "message" TEXT NOT NULL, "schema" TEXT, "url" TEXT, "request" TEXT, "state" TEXT NOT NULL, "answer" TEXT,
      "askedAt" ${integer} NOT NULL, "answeredAt" ${integer}, "deliveredAt" ${integer}, "askHolder" TEXT, "askUntil" ${integer},
      PRIMARY KEY ("owner", "taskId", "key"))`,
    `CREATE TABLE events (
      "seq" ${serial}, "at" ${integer} NOT NULL, "owner" TEXT NOT NULL, "taskId" TEXT NOT NULL, "type" TEXT NOT NULL,
      "detail" TEXT)`,
    `CREATE TABLE tombstones (
      "owner" TEXT NOT NULL, "taskId" TEXT NOT NULL, "reason" TEXT NOT NULL, "at" ${integer} NOT NULL,
      PRIMARY KEY ("owner", "taskId"))`,
    `CREATE INDEX tombstones_at ON tombstones ("at")`,
    ...guards,
  ],
  () => [
    // What metrics count, without a look at the rows.
    `CREATE INDEX tasks_status ON tasks ("status", "engine")`,
    `CREATE INDEX tasks_owed_cancels ON tasks ("engine", "cancelRequestedAt")
      WHERE "cancelRequestedAt" IS NOT NULL AND "cancelConfirmedAt" IS NULL`,
  ],
];

/** What signs cursors and request states, as it is stored: 32 bytes in hex. */
export function newSecret(): string {
  return randomBytes(32).toString("hex");
}

/** @throws WorkflowError `configuration` if the database was written by a newer release */
export function checkVersion(version: number): void {
  if (version <= MIGRATIONS.length) return;
  throw new WorkflowError(
    "configuration",
    `The database has schema version ${version}, this release knows ${MIGRATIONS.length}: use a newer release of Taskferry`,
  );
}
