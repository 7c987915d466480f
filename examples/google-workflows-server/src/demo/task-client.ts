/** What the demo needs of a client, whatever generation of MCP Tasks it speaks. */

/** How a task ended. */
export interface Ending {
  readonly status: string;
  /** What the call would have answered. Absent when it was cancelled. */
  readonly result?: ToolResult;
}

export interface ToolResult {
  readonly isError?: boolean;
  readonly content: readonly { readonly type: string; readonly text?: string }[];
  readonly structuredContent?: Readonly<Record<string, unknown>>;
}

/** A task, seen by a client. */
export interface RemoteTask {
  /** With it, another session finds the task again. */
  readonly handle: string;
  /** Asks once. */
  look(): Promise<{ readonly status: string; readonly message?: string }>;
  /** Waits for the end; questions on the way there are answered. */
  end(): Promise<Ending>;
  cancel(): Promise<void>;
}

/** One session. */
export interface TaskClient {
  readonly generation: string;
  /** Calls a tool as a task. The same `idempotencyKey` again is the same task. */
  start(tool: string, args: object, idempotencyKey?: string): Promise<RemoteTask>;
  resume(handle: string): Promise<RemoteTask>;
  close(): Promise<void>;
}

/** The answer to a question; `undefined` declines. */
export type Answerer = (message: string) => Record<string, string> | undefined;

/** Where Taskferry looks for an idempotency key. */
export const IDEMPOTENCY_KEY = "taskferry.dev/idempotency-key";

/** An answer as `elicitation/create` wants it. */
export function elicited(
  content: Record<string, string> | undefined,
): { action: "decline" } | { action: "accept"; content: Record<string, string> } {
  return content === undefined ? { action: "decline" } : { action: "accept", content };
}
