/** Every method in every era, by clients that have declared tasks and by such that have not: one table. */
import * as v1 from "@modelcontextprotocol/ext-tasks/core/v1";
import * as v2 from "@modelcontextprotocol/ext-tasks/core/v2";
import { expect, test } from "vitest";
import { z } from "zod";
import {
  DraftDeleteResult,
  DraftGetResult,
  DraftListResult,
  DraftRelatedResult,
} from "../support/draft-schemas.js";
import { type Json, modernRequest, type RpcReply, TASKS } from "../support/raw-client.js";
import { DRAFT_RELATED, DRAFT_TASK, RELATED, session, stateless } from "../support/sessions.js";
import { type StateName, wireServer } from "../support/wire-server.js";

const server = wireServer();

/** Who asks: the columns of the table. */
const ASKERS = [
  { era: "draft", over: "session", declared: false },
  { era: "draft", over: "session", declared: true },
  { era: "draft", over: "stateless", declared: false },
  { era: "2025-11-25", over: "session", declared: false },
  { era: "2025-11-25", over: "session", declared: true },
  { era: "2025-11-25", over: "stateless", declared: false },
  { era: "2026-07-28", over: "HTTP", declared: false },
  { era: "2026-07-28", over: "HTTP", declared: true },
] as const;
type Asker = (typeof ASKERS)[number];

/** What one asker is answered: an error code, or a shape. */
type Answer = number | z.ZodType;

interface Row {
  readonly method: string;
  readonly what: string;
  /** The state of the task that the request is about. */
  readonly about?: StateName | "nobody";
  params(asker: Asker, taskId: string): Json;
  readonly draft: Answer;
  readonly v2025: Answer;
  /** 2026-07-28, with the extension declared and without. */
  readonly v2026: Answer;
  readonly undeclared: Answer;
  /** Where a stateless asker of the 2025 era is answered otherwise: nothing tells its generation. */
  readonly stateless?: Answer;
}

const related2025 = z.object({ [RELATED]: z.strictObject({ taskId: z.string() }) });
const task2025 = v1.CreateTaskResultV1Schema;
const task2026 = v2.CreateTaskResultV2Schema;
const plain2025 = v1.CallToolResultV1Schema.refine(
  (result) => !("task" in result) && result.content.length > 0,
);
const plain2026 = v2.CallToolResultV2Schema.refine((result) => result.resultType === "complete");
/** Without evidence an entry carries the fields of both generations of the 2025 era. */
const bothLists = v1.ListTasksResultV1Schema.and(
  z.object({ tasks: z.array(z.looseObject({ keepAlive: z.number(), createdAt: z.string() })).min(1) }),
);
const list2025 = v1.ListTasksResultV1Schema.refine(({ tasks }) =>
  tasks.every((task) => !("keepAlive" in task) && "ttl" in task),
);
const acknowledged = z.looseObject({
  method: z.literal("notifications/subscriptions/acknowledged"),
  params: z.looseObject({ notifications: z.object({ taskIds: z.array(z.string()).length(1) }) }),
});

/** Asks for a task in the asker's own words; 2026-07-28 has none, the server decides. */
const asTask =
  (params: Json) =>
  ({ era }: Asker): Json => {
    if (era === "draft") return { ...params, _meta: { [DRAFT_TASK]: { taskId: crypto.randomUUID() } } };
    return era === "2025-11-25" ? { ...params, task: {} } : params;
  };
const asIs = (params: Json) => () => params;
const ofTask =
  (more: Json = {}) =>
  ({ era }: Asker, taskId: string): Json => ({
    taskId,
    ...more,
    ...(era === "draft" && { _meta: { [DRAFT_RELATED]: { taskId } } }),
  });

const plain = { name: "plain", arguments: {} };
const required = { name: "required", arguments: {} };
const forbidden = { name: "forbidden", arguments: {} };
const done = { about: "completed", params: ofTask() } as const;
const running = { about: "working", params: ofTask() } as const;
const nobody = { about: "nobody", params: ofTask() } as const;
const MISSING = -32021;

// biome-ignore format: a table
const TABLE: readonly Row[] = [
  { method: "tools/call", what: "as a task", params: asTask(plain), draft: DraftRelatedResult, v2025: task2025, v2026: task2026, undeclared: plain2026 },
  { method: "tools/call", what: "plain", params: asIs(plain), draft: plain2025, v2025: plain2025, v2026: task2026, undeclared: plain2026 },
  { method: "tools/call", what: "with the task param of 2025-11-25", params: asIs({ ...plain, task: {} }), draft: task2025, v2025: task2025, v2026: task2026, undeclared: plain2026 },
  { method: "tools/call", what: "with the draft's meta, malformed", params: asIs({ ...plain, _meta: { [DRAFT_TASK]: 1 } }), draft: -32602, v2025: -32602, v2026: task2026, undeclared: plain2026 },
  { method: "tools/call", what: "with a malformed task param", params: asIs({ ...plain, task: 1 }), draft: -32602, v2025: -32602, v2026: task2026, undeclared: plain2026 },
  { method: "tools/call", what: "required, as a task", params: asTask(required), draft: DraftRelatedResult, v2025: task2025, v2026: task2026, undeclared: MISSING },
  { method: "tools/call", what: "required, plain", params: asIs(required), draft: -32601, v2025: -32601, v2026: task2026, undeclared: MISSING },
  { method: "tools/call", what: "forbidden, as a task", params: asTask(forbidden), draft: plain2025, v2025: -32601, v2026: plain2026, undeclared: plain2026 },
  { method: "tools/call", what: "forbidden, plain", params: asIs(forbidden), draft: plain2025, v2025: plain2025, v2026: plain2026, undeclared: plain2026 },
  { method: "tools/call", what: "of no tool", params: asTask({ name: "none" }), draft: -32602, v2025: -32601, v2026: -32602, undeclared: -32602 },
  { method: "prompts/get", what: "as a task", params: asTask({ name: "summary" }), draft: DraftRelatedResult, v2025: -32601, v2026: z.object({ messages: z.array(z.unknown()) }), undeclared: z.object({ messages: z.array(z.unknown()) }) },
  { method: "resources/read", what: "as a task", params: asTask({ uri: "report://today" }), draft: DraftRelatedResult, v2025: -32601, v2026: z.object({ contents: z.array(z.unknown()) }), undeclared: z.object({ contents: z.array(z.unknown()) }) },
  { method: "tasks/get", what: "of a task that has ended", ...done, draft: DraftGetResult, v2025: v1.GetTaskResultV1Schema, v2026: v2.GetTaskResultV2Schema, undeclared: MISSING },
  { method: "tasks/get", what: "of a running task", ...running, draft: DraftGetResult, v2025: v1.GetTaskResultV1Schema, v2026: v2.GetTaskResultV2Schema, undeclared: MISSING },
  { method: "tasks/get", what: "of nobody's task", ...nobody, draft: -32602, v2025: -32602, v2026: -32602, undeclared: MISSING },
  { method: "tasks/result", what: "of a task that has ended", ...done, draft: DraftRelatedResult, v2025: v1.CallToolResultV1Schema.extend({ _meta: related2025 }), v2026: -32601, undeclared: -32601 },
  { method: "tasks/result", what: "of a cancelled task", about: "cancelled", params: ofTask(), draft: -32602, v2025: -32000, v2026: -32601, undeclared: -32601 },
  { method: "tasks/result", what: "of nobody's task", ...nobody, draft: -32602, v2025: -32602, v2026: -32601, undeclared: -32601 },
  { method: "tasks/list", what: "", about: "working", params: asIs({}), draft: DraftListResult, v2025: list2025, stateless: bothLists, v2026: -32601, undeclared: -32601 },
  { method: "tasks/list", what: "with a bad cursor", params: asIs({ cursor: "x" }), draft: -32602, v2025: -32602, v2026: -32601, undeclared: -32601 },
  { method: "tasks/delete", what: "of a task that has ended", ...done, draft: DraftDeleteResult, v2025: DraftDeleteResult, v2026: -32601, undeclared: -32601 },
  { method: "tasks/delete", what: "of a running task", ...running, draft: -32602, v2025: -32602, v2026: -32601, undeclared: -32601 },
  { method: "tasks/delete", what: "of nobody's task", ...nobody, draft: -32602, v2025: -32602, v2026: -32601, undeclared: -32601 },
  { method: "tasks/cancel", what: "of a running task", ...running, draft: v1.CancelTaskResultV1Schema, v2025: v1.CancelTaskResultV1Schema, v2026: v2.CancelTaskResultV2Schema, undeclared: MISSING },
  { method: "tasks/cancel", what: "of a task that has ended", ...done, draft: -32602, v2025: -32602, v2026: v2.CancelTaskResultV2Schema, undeclared: MISSING },
  { method: "tasks/cancel", what: "of nobody's task", ...nobody, draft: -32602, v2025: -32602, v2026: -32602, undeclared: MISSING },
  { method: "tasks/update", what: "of a task that asks", about: "input_required", params: ofTask({ inputResponses: { name: { action: "decline" } } }), draft: -32601, v2025: -32601, v2026: v2.UpdateTaskResultV2Schema, undeclared: MISSING },
  { method: "tasks/update", what: "without responses", about: "input_required", params: ofTask(), draft: -32601, v2025: -32601, v2026: -32602, undeclared: MISSING },
  { method: "tasks/update", what: "of nobody's task", about: "nobody", params: ofTask({ inputResponses: {} }), draft: -32601, v2025: -32601, v2026: -32602, undeclared: MISSING },
  { method: "subscriptions/listen", what: "to a task", about: "working", params: (_asker, taskId) => ({ notifications: { taskIds: [taskId] } }), draft: -32601, v2025: -32601, v2026: acknowledged, undeclared: MISSING },
  { method: "tasks/nonsense", what: "", about: "completed", params: ofTask(), draft: -32601, v2025: -32601, v2026: -32601, undeclared: -32601 },
];

for (const row of TABLE) {
  for (const asker of ASKERS) {
    const wanted = answerTo(row, asker);
    const says = typeof wanted === "number" ? String(wanted) : "answered";
    const who = `${asker.era} over ${asker.over}${asker.declared ? ", declared" : ""}`;
    test(`${row.method}${row.what && ` ${row.what}`}: ${who}: ${says}`, async () => {
      const taskId = row.about === undefined ? "" : await aTask(row.about, asker);
      const reply = await ask(asker, row.method, row.params(asker, taskId));
      if (typeof wanted === "number")
        expect(reply.error).toMatchObject({ code: wanted, message: expect.any(String) });
      else expect(wanted.safeParse(reply.result).error, JSON.stringify(reply)).toBeUndefined();
      if (wanted === MISSING) {
        expect(reply.error!.data.requiredCapabilities).toEqual(TASKS);
      }
    });
  }
}

test("the table has a row for every method of every generation, and says nothing twice", () => {
  const names = TABLE.map(({ method, what }) => `${method} ${what}`);
  expect(new Set(names).size).toBe(names.length);
  expect(new Set(TABLE.map(({ method }) => method))).toEqual(
    new Set([
      ...["tools/call", "prompts/get", "resources/read", "subscriptions/listen", "tasks/nonsense"],
      ...["tasks/get", "tasks/result", "tasks/list", "tasks/delete", "tasks/cancel", "tasks/update"],
    ]),
  );
});

function answerTo(row: Row, { era, over, declared }: Asker): Answer {
  if (era === "2026-07-28") return declared ? row.v2026 : row.undeclared;
  if (over === "stateless" && row.stateless !== undefined) return row.stateless;
  return era === "draft" ? row.draft : row.v2025;
}

function aTask(about: StateName | "nobody", { era }: Asker): Promise<string> | string {
  return about === "nobody" ? "nobody" : server.task(era, about);
}

async function ask({ era, over, declared }: Asker, method: string, params: Json): Promise<RpcReply> {
  if (era === "2026-07-28") {
    const capabilities = declared ? TASKS : {};
    return method === "subscriptions/listen" && declared
      ? firstOf(method, params)
      : modernRequest(server.url, method, params, { capabilities });
  }
  if (over === "stateless") return stateless(server.url, method, params);
  const client = await session(server.url, declared ? { tasks: { list: {}, cancel: {} } } : {});
  // A session shows what it speaks by what it asks for.
  const spoken =
    era === "draft"
      ? { _meta: { [DRAFT_RELATED]: { taskId: "x" } } }
      : { _meta: { [RELATED]: { taskId: "x" } } };
  const first = await server.task(era, "completed");
  await client.request("tasks/get", { taskId: first, ...spoken });
  return client.request(method, params);
}

/** The first message of a stream that stays open. */
async function firstOf(method: string, params: Json): Promise<RpcReply> {
  const abort = new AbortController();
  const response = await fetch(server.url, {
    method: "POST",
    signal: abort.signal,
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": method,
    },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method,
      params: {
        ...params,
        _meta: {
          "io.modelcontextprotocol/protocolVersion": "2026-07-28",
          "io.modelcontextprotocol/clientInfo": { name: "raw", version: "0" },
          "io.modelcontextprotocol/clientCapabilities": TASKS,
        },
      },
    }),
  });
  let text = "";
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { value, done: ended } = await reader.read();
    text += value ?? "";
    const line = text.split("\n").find((found) => found.startsWith("data:") && text.includes(`${found}\n`));
    if (line !== undefined || ended) {
      abort.abort();
      return { result: JSON.parse((line ?? text).replace(/^data:/, "")) };
    }
  }
}
