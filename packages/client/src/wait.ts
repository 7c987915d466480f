/** Polling, at the pace that the server suggests. */
import type { JsonObject, TaskStatus } from "./task-client.js";

/** When a server suggests nothing, in milliseconds. */
const DEFAULT_POLL_MS = 2_000;
/** Nobody is served by a client that polls faster. */
const FASTEST_POLL_MS = 20;

/**
 * Asks for a task until it has ended.
 * @param pace the field that suggests when to ask again, in milliseconds
 * @throws the signal's reason, or what asking throws
 */
export async function waitForEnd(
  get: () => Promise<JsonObject>,
  statusOf: (task: JsonObject) => TaskStatus,
  ended: ReadonlySet<string>,
  pace: string,
  {
    onStatus,
    signal,
  }: { readonly onStatus?: (status: TaskStatus) => void; readonly signal?: AbortSignal } = {},
): Promise<JsonObject> {
  let told = "";
  for (;;) {
    signal?.throwIfAborted();
    const task = await get();
    const status = statusOf(task);
    const now = JSON.stringify(status);
    if (now !== told) onStatus?.(status);
    told = now;
    if (ended.has(status.status)) return task;
    const suggested = task[pace];
    await pause(
      Math.max(FASTEST_POLL_MS, typeof suggested === "number" ? suggested : DEFAULT_POLL_MS),
      signal,
    );
  }
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const finish = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", finish);
      resolve();
    };
    const timer = setTimeout(finish, ms);
    signal?.addEventListener("abort", finish, { once: true });
  });
}
