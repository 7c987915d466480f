/** What a requestor sees of MCP Tasks, whatever generation the server speaks. */

/** JSON, as it goes over the wire. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** A JSON object. */
export type JsonObject = { readonly [key: string]: Json };

/** The generations of MCP Tasks: SEP-1686 as proposed, MCP 2025-11-25, and the extension of MCP 2026-07-28. */
export type Generation = "draft" | "2025-11-25" | "2026-07-28";

/** What a call asks for beside its arguments. */
export interface StartOptions {
  /** How long the result is to be kept, in milliseconds. The server may give less; 2026-07-28 does not ask. */
  readonly keepMs?: number;
  /** Taskferry servers: the same key again is the same task, so that a call may be retried. */
  readonly idempotencyKey?: string;
  /** The draft's task id: the client's own. @default a random one */
  readonly taskId?: string;
}

/** A task as it is now. `status` is in its generation's words. */
export interface TaskStatus {
  readonly status: string;
  readonly message?: string;
}

/** What a tool answers. */
export type ToolResult = JsonObject & {
  readonly content: readonly JsonObject[];
  readonly structuredContent?: JsonObject;
  /** The work was carried out and failed: `content` says why. */
  readonly isError?: boolean;
};

/**
 * How a task ended: `completed` if the call has an answer, perhaps with `isError`; `failed` if it has none. What
 * 2025-11-25 itself calls `failed` has an answer as a rule.
 */
export interface Ending {
  readonly status: "completed" | "failed" | "cancelled" | "unknown";
  /** What the call would have answered, perhaps with `isError`. */
  readonly result?: ToolResult;
  /** Why the call could not be carried out, or that its outcome is lost. */
  readonly error?: string;
}

/** A task at the server. */
export interface RemoteTask {
  readonly taskId: string;
  /** JSON text with which a later session, or another process, resumes the task. Store it before you wait. */
  readonly handle: string;
  /** Asks once. @throws if the server does not know the task (any more) */
  status(): Promise<TaskStatus>;
  /**
   * Waits for the end, and answers questions on the way with `ConnectOptions.answer`.
   * @param options `onStatus` hears of every status that is new
   */
  end(options?: {
    readonly onStatus?: (status: TaskStatus) => void;
    readonly signal?: AbortSignal;
  }): Promise<Ending>;
  /** Asks for the work to be stopped. How the task ended, `end` tells. */
  cancel(): Promise<void>;
}

/** One session with a server. */
export interface TaskClient {
  readonly generation: Generation;
  /** Calls a tool as a task. @throws if the server answers without one: the tool does not support tasks */
  start(tool: string, args?: JsonObject, options?: StartOptions): Promise<RemoteTask>;
  /** Goes on with a task that an earlier session has started. */
  resume(handle: string): Promise<RemoteTask>;
  close(): Promise<void>;
}

/** A question of a running workflow: the params of `elicitation/create`. */
export interface AskedQuestion {
  readonly message: string;
  readonly mode?: "form" | "url";
  readonly requestedSchema?: JsonObject;
  readonly url?: string;
}

/** An answer, as `elicitation/create` wants it. */
export interface Answered {
  readonly action: "accept" | "decline" | "cancel";
  readonly content?: Readonly<Record<string, string | number | boolean | readonly string[]>>;
}

/** How to reach a server, and what to tell it of oneself. */
export interface ConnectOptions {
  /**
   * `auto` takes 2026-07-28 where the server offers it, else 2025-11-25. The draft must be asked for: no capability
   * tells whether a server speaks it.
   * @default "auto"
   */
  readonly generation?: "auto" | Generation;
  /** Sent with every request, e.g. `authorization`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Answers questions. Absent: the client says that it cannot be asked. */
  readonly answer?: (question: AskedQuestion) => Answered | Promise<Answered>;
  /** @default `{ name: "taskferry-client", version: the package's }` */
  readonly clientInfo?: { readonly name: string; readonly version: string };
}
