import { randomUUID } from "node:crypto";
import type { NewTask } from "../../src/store/task-store.js";

/** A row as the engine writes it, with what a test wants changed. */
export function row(changes: Partial<NewTask> = {}): NewTask {
  const now = 1_800_000_000_000;
  return {
    owner: "ann",
    taskId: randomUUID(),
    generation: "2025-11-25",
    method: "tools/call",
    workflow: "flow",
    engine: "fake",
    status: "submitted",
    message: null,
    progress: null,
    outcome: null,
    request: { name: "flow", arguments: {} },
    input: {},
    idempotencyKey: null,
    requestHash: "hash",
    startKey: randomUUID(),
    startPhase: "owed",
    startAttempts: 0,
    firstStartAt: null,
    lastStartAt: null,
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
    retentionMs: 1000,
    createdAt: now,
    updatedAt: now,
    endedAt: null,
    expiresAt: null,
    requestId: null,
    connection: null,
    nextReadAt: now,
    dueAt: null,
    lastReadAt: null,
    readFailures: 0,
    failingSince: null,
    ...changes,
  };
}

export const CREATED = [{ type: "task.created" }];
