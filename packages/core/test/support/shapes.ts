/**
 * Checks every message that a client receives against the published schemas of its generation: `ext-tasks/core/v1` for
 * 2025-11-25, `core/v2` for 2026-07-28, and for the draft zod schemas of our own, from section 6 of SEP-1686.
 */
import * as v1 from "@modelcontextprotocol/ext-tasks/core/v1";
import * as v2 from "@modelcontextprotocol/ext-tasks/core/v2";
import { z } from "zod";
import { DRAFT_REPLIES, DraftCreated } from "./draft-schemas.js";
import type { Json } from "./raw-client.js";

const legacyTool = z.union([v1.CreateTaskResultV1Schema, v1.CallToolResultV1Schema]);
const modernTool = z.union([
  v2.CreateTaskResultV2Schema,
  v2.CallToolResultV2Schema,
  v2.InputRequiredCallToolResultV2Schema,
]);

type Schemas = Record<string, z.ZodType>;

const REPLIES: Record<"draft" | "2025-11-25" | "2026-07-28", Schemas> = {
  draft: DRAFT_REPLIES,
  "2025-11-25": {
    "tasks/get": v1.GetTaskResultV1Schema,
    "tasks/result": v1.CallToolResultV1Schema,
    "tasks/list": v1.ListTasksResultV1Schema,
    "tasks/cancel": v1.CancelTaskResultV1Schema,
    "tools/call": legacyTool,
    "tools/list": z.object({ tools: z.array(v1.ToolV1Schema) }),
    initialize: z.object({ capabilities: v1.ServerCapabilitiesV1Schema }),
  },
  "2026-07-28": {
    "tasks/get": v2.GetTaskResultV2Schema,
    "tasks/update": v2.UpdateTaskResultV2Schema,
    "tasks/cancel": v2.CancelTaskResultV2Schema,
    "tools/call": modernTool,
    "tools/list": z.object({ tools: z.array(v2.ToolV2Schema) }),
  },
};

const NOTES: Schemas = {
  "notifications/tasks/created": z.object({ params: DraftCreated }),
  "notifications/tasks": v2.TaskStatusNotificationV2Schema,
  "notifications/tasks/status": v1.TaskStatusNotificationV1Schema,
};

/** What of a message does not fit; `undefined` for one that fits or that no schema is about. */
export function misfit(
  generation: keyof typeof REPLIES,
  method: string | undefined,
  message: Json,
): string | undefined {
  const schema =
    message.method !== undefined
      ? NOTES[message.method]
      : "result" in message && method !== undefined
        ? REPLIES[generation][method]
        : undefined;
  if (schema === undefined) return undefined;
  const parsed = schema.safeParse(message.method !== undefined ? message : message.result);
  if (parsed.success) return undefined;
  return `${generation} ${message.method ?? method}: ${z.prettifyError(parsed.error)}\n${JSON.stringify(message)}`;
}

/** Puts itself between a client and its transport, and keeps a list of what did not fit. */
export class ShapeCheck {
  readonly misfits: string[] = [];
  /** Replies and notifications that a schema was there for, by method. */
  readonly checked: string[] = [];
  private readonly methods = new Map<Json, string>();

  constructor(readonly generation: keyof typeof REPLIES) {}

  sent(message: Json): void {
    if (message.method !== undefined && message.id !== undefined)
      this.methods.set(message.id, message.method);
  }

  received(message: Json): void {
    const method = message.method === undefined ? this.methods.get(message.id) : undefined;
    const found = misfit(this.generation, method, message);
    if (found !== undefined) this.misfits.push(found);
    const name = message.method ?? method;
    if (name !== undefined && ("result" in message || message.method !== undefined)) this.checked.push(name);
  }

  /** Watches a transport that a client is about to be connected to. */
  watch<
    T extends {
      send(message: Json, options?: Json): Promise<void>;
      start(): Promise<void>;
      onmessage?: Json;
    },
  >(transport: T): T {
    const send = transport.send.bind(transport);
    const start = transport.start.bind(transport);
    transport.send = (message: Json, options?: Json) => {
      for (const one of Array.isArray(message) ? message : [message]) this.sent(one);
      return send(message, options);
    };
    transport.start = () => {
      const deliver = transport.onmessage;
      transport.onmessage = (message: Json, extra: Json) => {
        this.received(message);
        return deliver?.(message, extra);
      };
      return start();
    };
    return transport;
  }
}
