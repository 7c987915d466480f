/** SEP-1686, 4.1 and 4.2: which requests become tasks, and what their ids may be. */
import type { McpServer } from "@modelcontextprotocol/server";
import { expect, test } from "vitest";
import { relatedTo } from "../support/draft-client.js";
import { draft } from "../support/draft-fixtures.js";
import { session, stateless, textOf } from "../support/sessions.js";

const TASK = "modelcontextprotocol.io/task";

/** A server that has ordinary tools, prompts and resources beside its workflows. */
function setup(server: McpServer): void {
  server.registerTool("ping", {}, async () => ({ content: [{ type: "text", text: "pong" }] }));
  server.registerPrompt("hello", {}, async () => ({
    messages: [{ role: "user", content: { type: "text", text: "Hello" } }],
  }));
  server.registerResource("note", "note://one", {}, async (uri) => ({
    contents: [{ uri: uri.href, text: "a note" }],
  }));
}

const withMeta = (params: object, taskId: string) => ({ ...params, _meta: { [TASK]: { taskId } } });

for (const [what, method, params, result] of [
  ["an ordinary tool", "tools/call", { name: "ping" }, { content: [{ type: "text", text: "pong" }] }],
  ["a workflow that is no task", "tools/call", { name: "never_as_task" }, { content: [{ text: "done" }] }],
  ["a companion tool", "tools/call", { name: "task_list" }, { structuredContent: { tasks: [] } }],
  ["an ordinary prompt", "prompts/get", { name: "hello" }, { messages: [{ content: { text: "Hello" } }] }],
  ["an ordinary resource", "resources/read", { uri: "note://one" }, { contents: [{ text: "a note" }] }],
  ["a list", "tools/list", {}, { tools: [] }],
] as const) {
  test(`4.1 ${what} does not support tasks: the meta is ignored and the answer is the ordinary one`, async () => {
    const { client } = await draft({ http: { setup } });
    const reply = await client.raw.request(method, withMeta(params, "t"));
    if (method === "tools/list") expect(reply.result.tools.length).toBeGreaterThan(3);
    else expect(reply.result).toMatchObject(result);
    expect(reply.result._meta).toBeUndefined();
    expect(client.createdNotices()).toEqual([]);
    const { error } = await client.about("tasks/get", "t");
    expect(error).toMatchObject({ code: -32602 });
  });
}

for (const [method, params, result] of [
  [
    "prompts/get",
    { name: "summary" },
    { messages: [{ role: "user", content: { text: "Summarize this." } }] },
  ],
  [
    "resources/read",
    { uri: "report://today" },
    { contents: [{ uri: "report://today", text: "All is well." }] },
  ],
] as const) {
  test(`4.1 ${method} runs as a task`, async () => {
    const { client } = await draft();
    const call = client.start(method, params);
    const { result: answered } = await call.reply;
    expect(answered).toMatchObject(result);
    expect(answered._meta).toEqual(relatedTo(call.taskId));
    await client.heardOf(call.taskId);
    expect(await client.get(call.taskId)).toMatchObject({ status: "completed" });
    expect((await client.result(call.taskId)).result).toEqual(answered);
  });
}

test("4.1 anonymous HTTP without a session ignores the meta: strangers' ids would collide", async () => {
  const { url } = await draft({ http: { allowAnonymous: true } });
  for (const text of ["one", "two"]) {
    const params = withMeta({ name: "echo", arguments: { text } }, "same");
    const { result } = await stateless(url, "tools/call", params);
    expect(result.structuredContent).toEqual({ text });
    expect(result._meta).toBeUndefined();
  }
  const { error } = await stateless(url, "tasks/get", { taskId: "same", _meta: relatedTo("same") });
  expect(error).toMatchObject({ code: -32602, message: "Failed to retrieve task: Task not found" });
});

test("2 tasks are advertised by request category, and nothing is required of the client", async () => {
  const { url } = await draft();
  const client = await session(url, {});
  const [{ result }] = [client.received[0]];
  expect(result.capabilities.tasks.requests).toEqual({
    tools: { call: {} },
    resources: { read: {} },
    prompts: { get: {} },
  });
});

test("4.2 a task id is any string, kept byte for byte", async () => {
  const { client } = await draft();
  for (const taskId of [
    "a b",
    "../../etc/passwd",
    "nul\u0000",
    "ü😀",
    "'; DROP TABLE tasks; --",
    "x".repeat(256),
  ]) {
    const call = client.tool("echo", { text: taskId }, { taskId });
    expect((await call.reply).result.structuredContent).toEqual({ text: taskId });
    expect((await client.get(taskId)).taskId).toBe(taskId);
    expect((await client.result(taskId)).result.structuredContent).toEqual({ text: taskId });
  }
});

test("4.2 a task id that cannot be one is refused with -32602, and nothing is started", async () => {
  const { client, scripted } = await draft();
  for (const taskId of [7, null, undefined, { id: "t" }, "", "x".repeat(257)]) {
    const params = { name: "scripted", _meta: { [TASK]: { taskId } } };
    const { error } = await client.raw.request("tools/call", params);
    expect(error, JSON.stringify(taskId)).toMatchObject({ code: -32602 });
  }
  expect(scripted.starts).toEqual([]);
});

test("4.2 an id that is taken is refused, and the first task goes on untouched", async () => {
  const { client, door, engine } = await draft();
  const first = await client.created("waits", {}, { taskId: "mine" });
  const before = await client.reaches("mine", "working");
  const second = client.tool("echo", { text: "other" }, { taskId: "mine", keepAlive: 1 });
  expect((await second.reply).error).toMatchObject({ code: -32602, message: "Task ID already exists: mine" });
  expect(client.createdNotices()).toHaveLength(1);
  expect(await client.get("mine")).toEqual(before);
  door.open();
  expect(textOf((await first.reply).result)).toBe("through");
  expect(await engine.list({ id: "local", kind: "local", limitKey: "local" }, undefined)).toMatchObject({
    views: [{ task: { workflow: "waits" } }],
  });
});

test("4.2 an id that is taken is refused after its task has ended too", async () => {
  const { client } = await draft();
  await client.tool("echo", { text: "one" }, { taskId: "mine" }).reply;
  const { error } = await client.tool("echo", { text: "two" }, { taskId: "mine" }).reply;
  expect(error).toMatchObject({ code: -32602, message: "Task ID already exists: mine" });
  expect((await client.result("mine")).result.structuredContent).toEqual({ text: "one" });
});
