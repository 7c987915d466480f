/** The draft's shapes, from section 6 of SEP-1686. Strict where the document lists every field. */
import * as v1 from "@modelcontextprotocol/ext-tasks/core/v1";
import { z } from "zod";

export const DraftRelatedMeta = z.object({
  "modelcontextprotocol.io/related-task": z.strictObject({ taskId: z.string() }),
});

export const DraftStatus = z.enum([
  "submitted",
  "working",
  "input_required",
  "completed",
  "failed",
  "cancelled",
  "unknown",
]);

/** `Task`: exactly these fields. */
export const DraftTask = z.strictObject({
  taskId: z.string(),
  status: DraftStatus,
  keepAlive: z.number().nullable(),
  pollFrequency: z.number().optional(),
  error: z.string().optional(),
});

export const DraftGetResult = DraftTask.extend({ _meta: DraftRelatedMeta });
export const DraftListResult = z.strictObject({
  tasks: z.array(DraftTask),
  nextCursor: z.string().optional(),
});
/** Whatever the original request would have answered, and the task that it belongs to. */
export const DraftRelatedResult = z.looseObject({ _meta: DraftRelatedMeta });
export const DraftDeleteResult = z.strictObject({ _meta: DraftRelatedMeta });

/** The params of `notifications/tasks/created`: otherwise empty. */
export const DraftCreated = z.strictObject({ _meta: DraftRelatedMeta });

/** What the server asks on an open call: any request, with the task that it belongs to. */
export const DraftServerRequest = z.looseObject({ method: z.string(), params: DraftRelatedResult });

/** What a draft client may be answered with, by method. */
export const DRAFT_REPLIES: Readonly<Record<string, z.ZodType>> = {
  "tasks/get": DraftGetResult,
  "tasks/result": DraftRelatedResult,
  "tasks/list": DraftListResult,
  "tasks/delete": DraftDeleteResult,
  "tools/call": v1.CallToolResultV1Schema,
};
