/** What the stories look for in results. */
import type { ToolResult } from "@taskferry/client";
import type { RunResult } from "@taskferry/github-actions";

/** The run as data; a failed one comes with its error, as the detail of it. */
export function runOf(result: ToolResult | undefined): Partial<RunResult> {
  const { structuredContent: content = {}, isError = false } = result ?? {};
  return (isError ? content["detail"] : content) as Partial<RunResult>;
}
