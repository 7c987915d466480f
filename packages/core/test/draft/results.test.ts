/** SEP-1686, 4.6, 4.7, 7.1 and 7.2: results, what ties messages to their task, and errors. */
import { expect, test } from "vitest";
import { relatedTo } from "../support/draft-client.js";
import { draft } from "../support/draft-fixtures.js";
import type { Json } from "../support/raw-client.js";
import { ASKING, QUEUED, RUNNING } from "../support/scripted-engine.js";
import { accept, DRAFT_RELATED, textOf } from "../support/sessions.js";

const DONE = { native: "DONE", status: "completed" } as const;

for (const [status, state] of [
  ["submitted", QUEUED],
  ["working", RUNNING],
  ["input_required", ASKING],
  ["failed", { native: "DENIED", status: "failed" }],
  ["cancelled", { native: "STOPPED", status: "cancelled" }],
  ["unknown", { native: "LOST", status: "unknown" }],
] as const) {
  test(`4.6 tasks/result of a task that is ${status} answers at once, with an error that says so`, async () => {
    const { client, scripted } = await draft({ client: { capabilities: {} } });
    scripted.state = state;
    const { taskId } = await client.created("scripted");
    await client.reaches(taskId, status);
    expect((await client.result(taskId)).error).toEqual({
      code: -32602,
      message: `Cannot retrieve result: Task status is '${status}', not 'completed'`,
    });
    scripted.state = DONE;
  });
}

test("4.6 a result may be fetched many times, by several sessions, and is the same each time", async () => {
  const { client, connect } = await draft();
  const { taskId, reply } = client.tool("echo", { text: "hi" });
  const { result } = await reply;
  const other = await connect();
  for (let times = 0; times < 5; times++) {
    expect((await client.result(taskId)).result).toEqual(result);
    expect((await other.result(taskId)).result).toEqual(result);
  }
});

test("4.7 everything about a task names it: notice, question, status, result, answer, deletion", async () => {
  const { client, scripted } = await draft();
  scripted.state = ASKING;
  const { taskId, reply } = await client.created("scripted");
  const request = await client.asked(taskId);
  await client.get(taskId);
  await client.answer(request, accept({ name: "Ada" }));
  scripted.state = { ...DONE, output: { value: { n: 1 } } };
  await reply;
  await client.result(taskId);
  await client.delete(taskId);
  const about = client.raw.received.filter(({ method, result }) =>
    method === undefined ? result.serverInfo === undefined : true,
  );
  expect(about).toHaveLength(6);
  for (const message of about) {
    expect((message.params ?? message.result)._meta).toEqual(relatedTo(taskId));
  }
});

test("4.7 two tasks at the same time are told apart by what their messages carry", async () => {
  const { client } = await draft();
  const calls = [await client.created("asks_first"), await client.created("asks_first")];
  for (const { taskId } of calls) {
    await client.answer(await client.asked(taskId), accept({ name: taskId }));
  }
  for (const { taskId, reply } of calls) expect((await reply).result._meta).toEqual(relatedTo(taskId));
});

for (const method of ["tasks/get", "tasks/result"]) {
  test(`7.1 ${method} of a task that is not there`, async () => {
    const { client } = await draft();
    expect((await client.about(method, "nobody")).error).toEqual({
      code: -32602,
      message: "Failed to retrieve task: Task not found",
    });
  });

  test(`7.1 ${method} with a task id that is no string`, async () => {
    const { client } = await draft();
    for (const taskId of [7, null, undefined, {}, ["t"]]) {
      const { error } = await client.raw.request(method, { taskId, _meta: { [DRAFT_RELATED]: { taskId } } });
      expect(error).toEqual({ code: -32602, message: "Invalid params: taskId must be a string" });
    }
  });
}

test("7.1 tasks/delete of a task that is not there", async () => {
  const { client } = await draft();
  expect((await client.delete("nobody")).error).toEqual({
    code: -32602,
    message: "Failed to delete task: Task not found",
  });
});

test("7.1 a duplicate id is named", async () => {
  const { client } = await draft();
  await client.tool("echo", { text: "hi" }, { taskId: "786512e2-9e0d-44bd-8f29-789f320fe840" }).reply;
  const again = client.tool("echo", { text: "hi" }, { taskId: "786512e2-9e0d-44bd-8f29-789f320fe840" });
  expect((await again.reply).error).toEqual({
    code: -32602,
    message: "Task ID already exists: 786512e2-9e0d-44bd-8f29-789f320fe840",
  });
});

test("7.1 arguments that do not fit are an error of the request, and make no task", async () => {
  const { client } = await draft();
  const call = client.tool("echo", { text: 7 });
  expect((await call.reply).error).toMatchObject({ code: -32602 });
  expect((await client.about("tasks/get", call.taskId)).error).toBeDefined();
});

test("7.1 an internal error is -32603 and says nothing of the inside", async () => {
  const { client, engine } = await draft();
  Object.defineProperty(engine, "list", {
    value: async () => {
      throw new Error("SELECT secret FROM inside");
    },
  });
  expect((await client.list()).error).toEqual({ code: -32603, message: "Internal error" });
});

test("7.2 a call that could not be carried out is failed, with what went wrong", async () => {
  const { client } = await draft();
  const { taskId, reply } = client.tool("refuses");
  const { error } = await reply;
  expect(error!.message).toContain("API rate limit exceeded");
  const task: Json = await client.get(taskId);
  expect(task).toMatchObject({ status: "failed", error: expect.stringContaining("API rate limit exceeded") });
  expect(await client.list()).toMatchObject({ result: { tasks: [{ error: task.error }] } });
});

test("7.2 a result with isError is completed: the error is in the result", async () => {
  const { client } = await draft();
  const { taskId, reply } = client.tool("fails");
  const { result } = await reply;
  expect(result).toMatchObject({ isError: true });
  expect(textOf(result)).toContain("it went wrong");
  const task = await client.get(taskId);
  expect(task.status).toBe("completed");
  expect("error" in task).toBe(false);
  expect((await client.result(taskId)).result).toEqual(result);
});
