import type { Answer, RunProgress } from "./adapter.js";
import type { WorkflowErrorCode } from "./errors.js";
import type { Json, JsonObject } from "./json.js";

/** The canonical statuses: the founding document's seven (SEP-1686, 4.3). */
export type TaskStatus =
  | "submitted"
  | "working"
  | "input_required"
  | "completed"
  | "failed"
  | "cancelled"
  | "unknown";

/** Which generation of MCP Tasks a task was made in. */
export type Generation = "draft" | "2025-11-25" | "2026-07-28";

/** The requests that a workflow may stand behind. */
export type TaskMethod = "tools/call" | "resources/read" | "prompts/get";

const TRANSITIONS: Readonly<Record<TaskStatus, readonly TaskStatus[]>> = {
  submitted: ["working", "input_required", "completed", "failed", "cancelled", "unknown"],
  working: ["input_required", "completed", "failed", "cancelled", "unknown"],
  input_required: ["working", "completed", "failed", "cancelled", "unknown"],
  completed: [],
  failed: [],
  cancelled: [],
  unknown: [],
};

/** Whether a task in this status never changes again. */
export function isTerminal(status: TaskStatus): boolean {
  return TRANSITIONS[status].length === 0;
}

/** Whether a task may go from one status to another. Staying is always allowed. */
export function mayBecome(from: TaskStatus, to: TaskStatus): boolean {
  return from === to || TRANSITIONS[from].includes(to);
}

/** What a terminal task holds: exactly one of these. */
export type TaskOutcome =
  /** What the original request would have answered, e.g. a `CallToolResult`. */
  | { readonly kind: "result"; readonly result: JsonObject }
  /** Why the call could not be carried out, or that its outcome is lost. `wire/` makes a JSON-RPC error of it. */
  | {
      readonly kind: "error";
      readonly error: {
        readonly code: WorkflowErrorCode;
        readonly message: string;
        readonly data?: JsonObject;
      };
    }
  | { readonly kind: "cancelled" };

/**
 * How far the start of the run is. `held`: waits for answers to questions that come before the work. `owed`: never
 * tried, or surely not begun. `attempted`: written before the engine is called, so after a
 * crash it may or may not have happened. `bound`: the run is known. `none`: there will be no run.
 */
export type StartPhase = "held" | "owed" | "attempted" | "bound" | "none";

/** One row of the mapping table: the MCP task and the native run. Times are epoch milliseconds. */
export interface Task {
  readonly owner: string;
  readonly taskId: string;
  readonly generation: Generation;
  readonly method: TaskMethod;
  /** The workflow's name, by which a restarted server finds the adapter again. */
  readonly workflow: string;
  readonly engine: string;
  readonly status: TaskStatus;
  readonly message: string | null;
  readonly progress: RunProgress | null;
  readonly outcome: TaskOutcome | null;

  /** The client's request params that matter for the result: `{ name, arguments }`, `{ uri }`, … */
  readonly request: JsonObject;
  /** The native input. */
  readonly input: Json;
  readonly idempotencyKey: string | null;
  /** SHA-256 of what was asked, to tell a retry from another request under the same idempotency key. */
  readonly requestHash: string;

  readonly startKey: string;
  readonly startPhase: StartPhase;
  readonly startAttempts: number;
  readonly firstStartAt: number | null;
  readonly lastStartAt: number | null;
  readonly boundAt: number | null;
  readonly runRef: Json | null;
  readonly runUrl: string | null;
  readonly claim: string | null;
  readonly native: string | null;
  readonly attempt: number | null;
  /** Whether a read has ever seen the run. */
  readonly seen: boolean;

  readonly cancelRequestedAt: number | null;
  /** When the engine took the stop, or the run was seen to have ended. `null` with a request: the stop is owed. */
  readonly cancelConfirmedAt: number | null;
  readonly stopAttempts: number;

  readonly retentionMs: number;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly endedAt: number | null;
  /** `endedAt + retentionMs`, `null` while the task runs: a running task never expires by age. */
  readonly expiresAt: number | null;

  /** The JSON-RPC id of the original request, as JSON text, and the connection it came on (draft cancel, SEP-1686 4.8). */
  readonly requestId: string | null;
  readonly connection: string | null;

  readonly version: number;
  /** When a poll may cause the next native read. */
  readonly nextReadAt: number;
  /** When the task must be looked at even if nobody polls; `null`: nothing is owed. */
  readonly dueAt: number | null;
  readonly lastReadAt: number | null;
  /** Native reads that failed in a row, and since when. */
  readonly readFailures: number;
  readonly failingSince: number | null;
  readonly leaseHolder: string | null;
  readonly leaseUntil: number | null;
}

/** Where a question is in its life. */
export type QuestionState =
  | "open"
  /** Answered by a client, still owed to the engine. */
  | "answered"
  /** The engine has the answer. */
  | "delivered"
  /** No longer open at the engine: answered elsewhere, timed out, or the run ended. */
  | "gone";

/** A stored question, with its answer once there is one. */
export interface StoredQuestion {
  readonly key: string;
  readonly kind: "form" | "url" | "sampling";
  readonly message: string;
  readonly schema: JsonObject | null;
  readonly url: string | null;
  readonly request: JsonObject | null;
  readonly state: QuestionState;
  readonly answer: Answer | null;
  readonly askedAt: number;
  readonly answeredAt: number | null;
  readonly deliveredAt: number | null;
  /** Which connection is asking a client right now (2025 era: one live elicitation per question), until when. */
  readonly askHolder: string | null;
  readonly askUntil: number | null;
}
