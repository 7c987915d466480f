/** SEP-1686, 3: the messages of the draft, and 6: their shapes. */
import { expect, test } from "vitest";
import { relatedTo } from "../support/draft-client.js";
import { draft } from "../support/draft-fixtures.js";
import { DraftCreated, DraftGetResult, DraftListResult } from "../support/draft-schemas.js";
import { gate } from "../support/gate.js";
import type { Json } from "../support/raw-client.js";
import { QUEUED } from "../support/scripted-engine.js";
import { stateless } from "../support/sessions.js";

test("3.1 a request with task meta makes a task under the id that the client chose", async () => {
  const { client } = await draft();
  const call = client.tool("echo", { text: "hi" }, { taskId: "786512e2-9e0d-44bd-8f29-789f320fe840" });
  const { result } = await call.reply;
  expect(result.structuredContent).toEqual({ text: "hi" });
  expect(result._meta).toEqual(relatedTo(call.taskId));
  expect(await client.get("786512e2-9e0d-44bd-8f29-789f320fe840")).toMatchObject({ status: "completed" });
});

test("3.2 tasks/get tells id, status, keepAlive and pollFrequency while the work goes on", async () => {
  const { client, door } = await draft();
  const { taskId } = await client.created("waits", {}, { keepAlive: 30_000 });
  const task = await client.reaches(taskId, "working");
  expect(task).toEqual({
    taskId,
    status: "working",
    keepAlive: 30_000,
    pollFrequency: 10,
    _meta: relatedTo(taskId),
  });
  door.open();
});

test("3.3 tasks/result answers what the original request was answered, in another session too", async () => {
  const { client, connect } = await draft();
  const call = client.tool("echo", { text: "hi" });
  const { result } = await call.reply;
  const other = await connect();
  expect((await other.result(call.taskId)).result).toEqual(result);
});

test("3.4 the creation notice comes before the answer, with the task's id and otherwise empty params", async () => {
  const { client } = await draft();
  const call = client.tool("echo", { text: "hi" });
  await call.reply;
  const [notice, ...more] = client.createdNotices();
  expect(more).toEqual([]);
  expect(notice!.params).toEqual({ _meta: relatedTo(call.taskId) });
  const order = client.raw.received.map((message) => message.method ?? message.id);
  expect(order.indexOf("notifications/tasks/created")).toBeLessThan(order.indexOf(call.id));
});

test("3.4 the creation notice does not wait for an engine whose start hangs, and the task can be polled", async () => {
  const { client, scripted } = await draft({ engine: { timing: { startWaitMs: 20 } } });
  scripted.startGate = gate();
  const { taskId, answered } = await client.created("scripted");
  expect(await client.get(taskId)).toMatchObject({ status: "submitted" });
  expect(answered()).toBe(false);
  scripted.startGate.open();
});

test("3.4 the creation notice comes on the call's own stream where there is no session", async () => {
  const { url } = await draft();
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 5,
      method: "tools/call",
      params: {
        name: "echo",
        arguments: { text: "hi" },
        _meta: { "modelcontextprotocol.io/task": { taskId: "t" } },
      },
    }),
  });
  const lines = (await response.text()).split("\n").filter((line) => line.startsWith("data:"));
  const [notice, answer] = lines.map((line) => JSON.parse(line.slice(5)));
  expect(notice.method).toBe("notifications/tasks/created");
  expect(DraftCreated.parse(notice.params)._meta).toEqual(relatedTo("t"));
  expect(answer).toMatchObject({ id: 5, result: { _meta: relatedTo("t") } });
});

test("3.4 no notice comes for a request that makes no task", async () => {
  const { client } = await draft();
  const { reply } = client.tool("never_as_task");
  expect((await client.raw.request("tools/call", { name: "never_as_task" })).result).toBeDefined();
  await expect(reply).rejects.toThrow();
  expect(client.createdNotices()).toEqual([]);
});

test("3.5 tasks/list shows the tasks as tasks/get does, without their results", async () => {
  const { client, door } = await draft();
  const done = client.tool("echo", { text: "hi" });
  await done.reply;
  const { taskId } = await client.created("waits");
  await client.reaches(taskId, "working");
  const { result } = await client.list();
  const fields = { keepAlive: 3_600_000, pollFrequency: 10 };
  expect(result).toEqual({
    tasks: expect.arrayContaining([
      { taskId: done.taskId, status: "completed", ...fields },
      { taskId, status: "working", ...fields },
    ]),
  });
  door.open();
});

test("3.6 tasks/delete removes the task and its result, and answers nothing but whose it was", async () => {
  const { client } = await draft();
  const call = client.tool("echo", { text: "hi" });
  await call.reply;
  expect((await client.delete(call.taskId)).result).toEqual({ _meta: relatedTo(call.taskId) });
  for (const method of ["tasks/get", "tasks/result"]) {
    const { error } = await client.about(method, call.taskId);
    expect(error).toMatchObject({ code: -32602, message: "Failed to retrieve task: Task not found" });
  }
  expect((await client.list()).result.tasks).toEqual([]);
});

const states: Record<string, Json> = {
  submitted: QUEUED,
  working: { native: "RUNNING", status: "working" },
  failed: { native: "DENIED", status: "failed", failure: { code: "Denied", message: "not yours" } },
  cancelled: { native: "STOPPED", status: "cancelled" },
  completed: { native: "DONE", status: "completed", output: { value: { n: 1 } } },
  unknown: { native: "LOST", status: "unknown" },
};

for (const [status, state] of Object.entries(states)) {
  test(`6 a task that is ${status} has the fields of the document and no others`, async () => {
    const { client, scripted } = await draft();
    scripted.state = state;
    const { taskId } = await client.created("scripted");
    const task = DraftGetResult.parse(await client.reaches(taskId, status));
    expect("error" in task).toBe(status === "failed" || status === "unknown");
    const page = DraftListResult.parse((await client.list()).result);
    const { _meta, ...entry } = task;
    expect(page.tasks).toEqual([entry]);
    scripted.state = states.completed;
  });
}

test("6 a draft client that polls without a session is answered in the same shape", async () => {
  const { client, url } = await draft();
  const { taskId, reply } = client.tool("echo", { text: "hi" });
  await reply;
  const polled = await stateless(url, "tasks/get", { taskId, _meta: relatedTo(taskId) });
  expect(DraftGetResult.parse(polled.result)).toEqual(await client.get(taskId));
});
