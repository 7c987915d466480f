import { DraftTaskClient } from "./draft.js";
import { SdkTaskClient } from "./sdk.js";
import type { ConnectOptions, TaskClient } from "./task-client.js";

/**
 * Opens a session with a server over Streamable HTTP.
 *
 * @example
 * const client = await connect("http://127.0.0.1:8765/mcp", { answer: (question) => askMyUser(question) });
 * const task = await client.start("deploy", { branch: "main" });
 * await save(task.handle); // from here on a crash loses nothing
 * const { status, result } = await task.end({ onStatus: console.log });
 * @throws if the server cannot be reached, or does not offer the generation that is asked for
 */
export async function connect(url: string | URL, options: ConnectOptions = {}): Promise<TaskClient> {
  const { generation = "auto" } = options;
  const target = new URL(url);
  if (generation === "draft") return DraftTaskClient.open(target, options);
  return SdkTaskClient.open(target, generation, options);
}
