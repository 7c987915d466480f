/**
 * `subscriptions/listen` with `taskIds` (ext-tasks, "Task Status Notifications"; basic/utilities/subscriptions of
 * 2026-07-28). Stands in the place of the one check that the official suite always skips.
 */
import { join } from "node:path";
import { TaskStatusNotificationV2Schema } from "@modelcontextprotocol/ext-tasks/core/v2";
import { createMcpHandler, type McpRequestContext, McpServer } from "@modelcontextprotocol/server";
import { describe, expect, onTestFinished, test } from "vitest";
import { attach, LOCAL_OWNER, principalOwner } from "../../src/index.js";
import { listenOverHttp } from "../../src/server/listen-http.js";
import { type Face, httpFace, type Listen, stdioFace } from "../support/listening.js";
import { type Json, TASKS } from "../support/raw-client.js";
import { open } from "../support/server-process.js";
import { fixtureEngine, modern } from "../support/serving.js";

const SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId";
const ASKS = { elicitation: { form: {} }, extensions: { "io.modelcontextprotocol/tasks": {} } };
const ACK = "notifications/subscriptions/acknowledged";

async function startTask(face: Face, name: string, args: Json, capabilities?: Json): Promise<string> {
  const { result } = await face.request("tools/call", { name, arguments: args }, capabilities);
  expect(result.resultType).toBe("task");
  return result.taskId;
}

const acknowledged = (listen: Listen): Promise<Json> =>
  listen.until(() => listen.messages.find(({ method }) => method === ACK)?.params.notifications);
const ended = (task: Json) => ["completed", "failed", "cancelled"].includes(task.status);

describe.each([
  ["HTTP", httpFace],
  ["stdio", stdioFace],
] as const)("over %s", (kind, makeFace) => {
  test("acknowledges first, then tells the task as it is, as it goes, and as it ends", async () => {
    const face = await makeFace();
    const gate = join(face.home, "gate");
    const taskId = await startTask(face, "gated", { gate });
    const listen = await face.listen({ taskIds: [taskId] });
    await listen.note(taskId, (task) => task.statusMessage === "one of three");
    open(gate);
    const last = await listen.note(taskId, ended);
    expect(listen.messages[0]).toMatchObject({
      method: ACK,
      params: { notifications: { taskIds: [taskId] } },
    });
    expect(last.params.result.structuredContent).toEqual({ opened: "yes" });
    for (const { params } of listen.messages) expect(params._meta[SUBSCRIPTION]).toBe(listen.id);
  });

  test("a note is the full task, exactly as tasks/get answers it at that moment", async () => {
    const face = await makeFace();
    const asking = await startTask(face, "greets", {}, ASKS);
    const failing = await startTask(face, "refuses", {}, ASKS);
    const gate = join(face.home, "gate");
    const going = await startTask(face, "gated", { gate }, ASKS);
    const listen = await face.listen({ taskIds: [asking, failing, going] }, ASKS);
    const notes = [
      await listen.note(asking, (task) => task.status === "input_required"),
      await listen.note(failing, ended),
      await listen.note(going, (task) => task.statusMessage === "one of three"),
    ];
    for (const note of notes) {
      const { result } = await face.request("tasks/get", { taskId: note.params.taskId }, ASKS);
      const { resultType, _meta, ...task } = result;
      const { _meta: _noted, ...told } = note.params;
      // Every read of an engine touches the row; what is told of the task is the same.
      const { lastUpdatedAt: _now, ...shown } = task;
      const { lastUpdatedAt: _then, ...toldShown } = told;
      expect(toldShown).toEqual(shown);
      expect(TaskStatusNotificationV2Schema.safeParse(note).error).toBeUndefined();
    }
    expect(notes[0].params.inputRequests).toBeDefined();
    expect(notes[1].params.error.code).toBe(-32603);
    open(gate);
  });

  test("foreign and unknown ids are left out of the acknowledgement alike, and nothing is told of them", async () => {
    const face = await makeFace();
    const mine = await startTask(face, "waits", { gate: join(face.home, "never") });
    const stranger = principalOwner({ issuer: "elsewhere", subject: "somebody" });
    const { task: foreign } = await face.engine.create({
      owner: stranger,
      generation: "2026-07-28",
      workflow: "echo",
      arguments: { text: "secret of another" },
    });
    const listen = await face.listen({ taskIds: ["unknown", foreign.taskId, mine, mine] });
    expect(await acknowledged(listen)).toEqual({ taskIds: [mine] });
    await listen.note(mine, () => true);
    expect(JSON.stringify(listen.messages)).not.toContain(foreign.taskId);
  });

  test("with no known id the stream stays open and acknowledges none", async () => {
    const face = await makeFace();
    const listen = await face.listen({ taskIds: ["unknown"] });
    expect(await acknowledged(listen)).toEqual({ taskIds: [] });
    expect(listen.messages.some((message) => "result" in message)).toBe(false);
    expect(listen.ended).toBe(false);
  });

  test("list changes come along only for who asked for them", async () => {
    const face = await makeFace();
    const taskId = await startTask(face, "gated", { gate: join(face.home, "gate") });
    const both = await face.listen({ taskIds: [taskId], toolsListChanged: true });
    const tasksOnly = await face.listen({ taskIds: [taskId] });
    expect(await acknowledged(both)).toEqual({ taskIds: [taskId], toolsListChanged: true });
    expect(await acknowledged(tasksOnly)).toEqual({ taskIds: [taskId] });
    face.toolsChanged();
    const changed = "notifications/tools/list_changed";
    const note = await both.until(() => both.messages.find(({ method }) => method === changed));
    expect(note.params._meta[SUBSCRIPTION]).toBe(both.id);
    // The end of the task comes after the change, on both streams.
    open(join(face.home, "gate"));
    await both.note(taskId, ended);
    await tasksOnly.note(taskId, ended);
    expect(tasksOnly.messages.filter(({ method }) => method === changed)).toEqual([]);
  });

  test("a listen of the SDK's own filters alone is the SDK's", async () => {
    const face = await makeFace();
    const listen = await face.listen({ toolsListChanged: true }, {});
    expect(await acknowledged(listen)).toEqual({ toolsListChanged: true });
  });

  test("a client that has not declared the extension hears -32021 and what is missing", async () => {
    const face = await makeFace();
    const taskId = await startTask(face, "waits", { gate: join(face.home, "never") });
    const listen = await face.listen({ taskIds: [taskId] }, {});
    const reply = await listen.until(() => listen.messages.find((message) => "error" in message));
    expect(reply).toMatchObject({
      id: listen.id,
      error: {
        code: -32021,
        data: { requiredCapabilities: { extensions: { "io.modelcontextprotocol/tasks": {} } } },
      },
    });
    expect(listen.messages).toHaveLength(1);
    if (kind === "HTTP") expect(listen.status).toBe(400);
  });

  test.each([
    ["taskIds that are no list", { taskIds: "all" }],
    ["taskIds that hold no strings", { taskIds: [1, null] }],
    ["a filter of the SDK that is no boolean", { taskIds: [], toolsListChanged: "yes" }],
    ["more taskIds than anybody has", { taskIds: Array.from({ length: 1_001 }, String) }],
    ["no object at all", "taskIds"],
  ])("malformed filters are refused: %s", async (_what, notifications) => {
    const face = await makeFace();
    const listen = await face.listen(notifications);
    const reply = await listen.until(() => listen.messages.find((message) => "error" in message));
    expect(reply.error.code).toBe(-32602);
    expect(reply.error.message.length).toBeGreaterThan(10);
    expect(listen.messages).toHaveLength(1);
  });

  test("who listens again is told the current state at once", async () => {
    const face = await makeFace();
    const gate = join(face.home, "gate");
    const taskId = await startTask(face, "gated", { gate });
    const first = await face.listen({ taskIds: [taskId] });
    await first.note(taskId, () => true);
    await first.cancel();
    open(gate);
    await expect
      .poll(async () => (await face.request("tasks/get", { taskId })).result.status)
      .toBe("completed");
    const second = await face.listen({ taskIds: [taskId] });
    const note = await second.note(taskId, () => true);
    expect(note.params).toMatchObject({
      status: "completed",
      result: { structuredContent: { opened: "yes" } },
    });
    expect(second.messages[0].method).toBe(ACK);
  });

  test("a cancelled listen is told nothing more, and leaves the task and other listens alone", async () => {
    const face = await makeFace();
    const gate = join(face.home, "gate");
    const taskId = await startTask(face, "gated", { gate });
    const first = await face.listen({ taskIds: [taskId] });
    const second = await face.listen({ taskIds: [taskId] });
    await first.note(taskId, () => true);
    await second.note(taskId, () => true);
    await first.cancel();
    // Messages of one connection are handled in order: the answer shows that the cancel has been.
    await face.request("tasks/get", { taskId });
    const before = first.messages.length;
    open(gate);
    const last = await second.note(taskId, ended);
    expect(last.params.status).toBe("completed");
    expect(first.messages.slice(before).filter(({ method }) => method === "notifications/tasks")).toEqual([]);
  });

  test("a server that closes ends the stream with the closing result", async () => {
    const face = await makeFace();
    const taskId = await startTask(face, "waits", { gate: join(face.home, "never") });
    const listen = await face.listen({ taskIds: [taskId] });
    await listen.note(taskId, () => true);
    await face.closeServer();
    const last = await listen.until(() => listen.messages.find((message) => "result" in message));
    expect(last).toMatchObject({ id: listen.id, result: { _meta: { [SUBSCRIPTION]: listen.id } } });
    expect(listen.messages.at(-1)).toBe(last);
  });
});

test("over stdio, more listens than there is room for are refused, and the server goes on", async () => {
  const face = await stdioFace();
  const taskId = await startTask(face, "waits", { gate: join(face.home, "never") });
  // The SDK's default.
  const room = Array.from({ length: 1024 }, () => face.listen({ taskIds: [taskId] }));
  for (const listen of await Promise.all(room)) await listen.until(() => listen.messages.length > 0);
  const one = await face.listen({ taskIds: [taskId] });
  const refusal = await one.until(() => one.messages[0]);
  expect(refusal).toMatchObject({ id: one.id, error: { message: "Subscription limit reached" } });
  expect((await face.request("tasks/get", { taskId })).result.status).toBe("working");
});

test("over HTTP, the refusal of a listen that there is no room for comes through", async () => {
  const { engine } = await fixtureEngine();
  const make = (context: McpRequestContext) => {
    const server = new McpServer({ name: "full", version: "0" });
    attach(server, engine, { context });
    return server;
  };
  const entry = createMcpHandler(make, { maxSubscriptions: 1 });
  onTestFinished(() => entry.close());
  const listen = (id: number) => {
    const message = {
      jsonrpc: "2.0",
      id,
      method: "subscriptions/listen",
      params: modern({ notifications: { taskIds: ["any"] } }, TASKS),
    };
    const request = new Request("http://localhost/mcp", {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "subscriptions/listen",
      },
      body: JSON.stringify(message),
    });
    return listenOverHttp(entry, request, message, engine, LOCAL_OWNER, { parsedBody: message });
  };
  expect((await listen(1)).headers.get("content-type")).toContain("text/event-stream");
  const refused = await listen(2);
  expect(await refused.json()).toMatchObject({ id: 2, error: { message: "Subscription limit reached" } });
});
