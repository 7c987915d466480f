/** What the stories look for in results. */
import type { ToolResult } from "@taskferry/client";

export function trackingOf(result: ToolResult | undefined): unknown {
  return result?.structuredContent?.["trackingId"];
}
