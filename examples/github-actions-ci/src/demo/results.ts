/** What the stories look for in results. */
import type { RunResult } from "@taskferry/github-actions";
import type { TaskClient, ToolResult } from "./task-client.js";

/** The run as data; a failed one comes with its error, as the detail of it. */
export function runOf(result: ToolResult | undefined): Partial<RunResult> {
  const { structuredContent: content = {}, isError = false } = result ?? {};
  return (isError ? content["detail"] : content) as Partial<RunResult>;
}

export function textOf(result: ToolResult | undefined): string {
  return (result?.content ?? []).map((block) => block.text ?? "").join("\n");
}

/** Plays one part per client, all at the same time, and closes them. */
export async function withClients(
  clients: readonly TaskClient[],
  play: (client: TaskClient, index: number) => Promise<void>,
): Promise<void> {
  await Promise.all(clients.map(play));
  await Promise.all(clients.map((client) => client.close()));
}
