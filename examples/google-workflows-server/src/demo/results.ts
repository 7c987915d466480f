/** What the stories look for in results. */
import type { TaskClient, ToolResult } from "./task-client.js";

export function trackingOf(result: ToolResult | undefined): unknown {
  return result?.structuredContent?.["trackingId"];
}

export function textOf(result: ToolResult | undefined): string {
  return (result?.content ?? []).map((block) => block.text ?? "").join("\n");
}

/** Plays one part per client, all at the same time, and closes them. */
export async function withClients(
  clients: readonly TaskClient[],
  play: (client: TaskClient) => Promise<void>,
): Promise<void> {
  await Promise.all(clients.map(play));
  await Promise.all(clients.map((client) => client.close()));
}
