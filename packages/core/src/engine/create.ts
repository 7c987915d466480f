/** What a task is made of: the call that asks for it, and the row that it becomes. */
import { hash, randomFillSync, randomUUID } from "node:crypto";
import type { Question } from "../contract/adapter.js";
import { WorkflowError } from "../contract/errors.js";
import { canonicalJson, type JsonObject } from "../contract/json.js";
import type { Owner } from "../contract/owner.js";
import type { Generation } from "../contract/task.js";
import type { Workflow } from "../contract/workflow.js";
import type { NewTask } from "../store/task-store.js";

/** How long results are kept. */
export interface Retention {
  /** When a client asks for nothing. Milliseconds. @default 3600000 (1 hour) */
  readonly defaultMs: number;
  /** The most that a client gets. Milliseconds. @default 604800000 (7 days) */
  readonly maxMs: number;
}

/** A request to make a task. */
export interface CreateCall {
  readonly owner: Owner;
  readonly generation: Generation;
  readonly workflow: string;
  /** As the client sent them: checked here. */
  readonly arguments: unknown;
  /** The resource that is read, where the workflow stands behind resources. */
  readonly uri?: string;
  /** The draft's client-made id. Absent: a random one. */
  readonly taskId?: string;
  readonly retentionMs?: number;
  readonly idempotencyKey?: string;
  /** JSON text of the JSON-RPC id, and the connection it came on. */
  readonly requestId?: string;
  readonly connection?: string;
  /** Answers to the `before` hook that the client has brought along already. */
  readonly answers?: JsonObject;
  /** Asks the client the hook's questions now; `undefined`: it cannot be asked, so the task waits with them. */
  readonly ask?: (questions: readonly Question[]) => Promise<Readonly<Record<string, unknown>> | undefined>;
}

/** What the `before` hook made of a call: the input, or questions to wait with, or a refusal. */
export interface Prepared {
  readonly input: JsonObject;
  readonly hold?: readonly Question[];
  readonly refuse?: string;
}

/** The row of a task that is about to be made. */
export function newTask(
  call: CreateCall,
  workflow: Workflow,
  asked: Prepared & { readonly arguments: JsonObject; readonly requestHash: string },
  retention: Retention,
  leaseMs: number,
): NewTask {
  const now = Date.now();
  const wanted = call.retentionMs ?? workflow.retentionMs ?? retention.defaultMs;
  const retentionMs = Math.min(Math.max(0, Math.floor(wanted)), retention.maxMs);
  const held = asked.hold !== undefined;
  const starts = !held && asked.refuse === undefined;
  return {
    owner: call.owner.id,
    taskId: call.taskId ?? randomUUID(),
    generation: call.generation,
    method: workflow.method,
    workflow: workflow.name,
    engine: workflow.adapter.engine,
    status: "submitted",
    message: null,
    progress: null,
    outcome: null,
    request: {
      name: workflow.name,
      arguments: asked.arguments,
      ...(call.uri !== undefined && { uri: call.uri }),
    },
    input: workflow.toNative(asked.input),
    idempotencyKey: call.idempotencyKey ?? null,
    requestHash: asked.requestHash,
    startKey: newStartKey(),
    // The first attempt is written with the row: one durable write before the engine is called, not two.
    startPhase: held ? "held" : asked.refuse === undefined ? "attempted" : "none",
    startAttempts: starts ? 1 : 0,
    firstStartAt: starts ? now : null,
    lastStartAt: starts ? now : null,
    boundAt: null,
    runRef: null,
    runUrl: null,
    claim: null,
    native: null,
    attempt: null,
    seen: false,
    cancelRequestedAt: null,
    cancelConfirmedAt: null,
    stopAttempts: 0,
    retentionMs,
    createdAt: now,
    updatedAt: now,
    endedAt: null,
    expiresAt: null,
    // Only the draft cancels by the request's id.
    requestId: call.generation === "draft" ? (call.requestId ?? null) : null,
    connection: call.generation === "draft" ? (call.connection ?? null) : null,
    nextReadAt: now,
    // This process starts the run itself; others look only if it has not come to that.
    dueAt: held ? null : now + leaseMs,
    lastReadAt: null,
    readFailures: 0,
    failingSince: null,
    ...(asked.refuse !== undefined && {
      status: "completed" as const,
      outcome: {
        kind: "result" as const,
        result: { content: [{ type: "text", text: asked.refuse }], isError: true },
      },
      endedAt: now,
      expiresAt: now + retentionMs,
      dueAt: null,
    }),
  };
}

/** @throws WorkflowError `invalid_request` */
export function checkTaskId(id: string, what = "task id"): void {
  if (id.length >= 1 && id.length <= 256) return;
  throw new WorkflowError(
    "invalid_request",
    `Invalid ${what}: it must have 1 to 256 characters, this one has ${id.length}`,
  );
}

const KEY_ALPHABET = "abcdefghijklmnopqrstuvwxyz012345";

const KEY_LENGTH = 26;
/** Drawn for many keys at once: asking the system costs more than all the rest of a key. */
const entropy = Buffer.alloc(KEY_LENGTH * 128);
let drawn = entropy.length;

/** 26 characters of 32: 130 bits. Begins with a letter, since some engines want that of names. */
function newStartKey(): string {
  if (drawn === entropy.length) {
    randomFillSync(entropy);
    drawn = 0;
  }
  const bytes = entropy.subarray(drawn, drawn + KEY_LENGTH);
  drawn += KEY_LENGTH;
  const letters = Array.from(bytes, (byte) => KEY_ALPHABET[byte & 31]).join("");
  return KEY_ALPHABET[bytes[0]! % 26] + letters.slice(1);
}

/** Tells a retry of a call from another call. */
export function requestHashOf(workflow: Workflow, args: JsonObject): string {
  return hash("sha256", canonicalJson([workflow.name, args]), "hex");
}
