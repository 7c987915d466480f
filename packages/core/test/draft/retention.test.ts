/** SEP-1686, 4.5 and 8.2: how long results are kept, and what bounds the resources of a requestor. */
import { expect, test } from "vitest";
import { type DraftOptions, draft } from "../support/draft-fixtures.js";
import { travel } from "../support/gate.js";
import { QUEUED } from "../support/scripted-engine.js";

const retention = { defaultMs: 60_000, maxMs: 600_000 };

for (const [what, keepAlive, actual] of [
  ["absent: the default", undefined, 60_000],
  ["null: the default", null, 60_000],
  ["asked for: as asked", 120_000, 120_000],
  ["a fraction: whole milliseconds", 1500.7, 1500],
  ["over the maximum: the maximum", 10_000_000, 600_000],
  ["endless: the maximum", 1e300, 600_000],
] as const) {
  test(`4.5 keepAlive ${what}, reported while the work goes on and after`, async () => {
    const { client, door } = await draft({ engine: { retention } });
    const { taskId, reply } = await client.created("waits", {}, keepAlive === undefined ? {} : { keepAlive });
    expect((await client.get(taskId)).keepAlive).toBe(actual);
    door.open();
    await reply;
    expect((await client.get(taskId)).keepAlive).toBe(actual);
    expect((await client.list()).result.tasks[0].keepAlive).toBe(actual);
  });
}

test("4.5 a keepAlive that is no duration is refused, and nothing is started", async () => {
  const { client, scripted } = await draft();
  for (const keepAlive of [-1, "60000", true, [], {}]) {
    const { error } = await client.tool("scripted", {}, { keepAlive }).reply;
    expect(error).toMatchObject({
      code: -32602,
      message: "keepAlive must be a number of milliseconds, 0 or more",
    });
  }
  expect(scripted.starts).toEqual([]);
});

test("4.5 a result is there until keepAlive has passed since the end, and not longer", async () => {
  const { client } = await draft({ engine: { timing: { sweepMs: 3_600_000 } } });
  const { taskId, reply } = client.tool("echo", { text: "hi" }, { keepAlive: 60_000 });
  await reply;
  travel(50_000);
  expect((await client.result(taskId)).result.structuredContent).toEqual({ text: "hi" });
  travel(60_001);
  for (const method of ["tasks/get", "tasks/result"]) {
    expect((await client.about(method, taskId)).error).toEqual({
      code: -32602,
      message: "Failed to retrieve task: Task has expired",
    });
  }
  expect((await client.list()).result.tasks).toEqual([]);
});

test("4.5 keepAlive counts from the end: a task that runs does not expire, nor the result of a long run", async () => {
  const { client, scripted } = await draft();
  scripted.state = QUEUED;
  const { taskId, reply } = await client.created("scripted", {}, { keepAlive: 60_000 });
  travel(30 * 24 * 3_600_000);
  expect(await client.get(taskId)).toMatchObject({ status: "submitted", keepAlive: 60_000 });
  scripted.state = { native: "DONE", status: "completed", output: { value: { n: 1 } } };
  await reply;
  expect((await client.result(taskId)).result.structuredContent).toEqual({ n: 1 });
});

test("4.5 with keepAlive 0 the open call still hears the result, and then it is gone", async () => {
  const { client } = await draft();
  const { taskId, reply } = client.tool("echo", { text: "hi" }, { keepAlive: 0 });
  expect((await reply).result.structuredContent).toEqual({ text: "hi" });
  expect((await client.about("tasks/get", taskId)).error!.message).toBe(
    "Failed to retrieve task: Task has expired",
  );
});

const sweeping: DraftOptions = { engine: { timing: { sweepMs: 20, tickMs: 20, tombstoneMs: 3_600_000 } } };

test("8.2 expired tasks are removed by themselves; who polls late hears that they have expired", async () => {
  const { client } = await draft(sweeping);
  const { taskId, reply } = client.tool("echo", { text: "hi" }, { keepAlive: 5_000 });
  await reply;
  travel(5_001);
  // The id is free again once the row is gone, and taken as long as it is there.
  await expect
    .poll(async () => (await client.tool("echo", { text: "again" }, { taskId }).reply).error?.message)
    .toBeUndefined();
  expect((await client.get(taskId)).status).toBe("completed");
});

test("8.2 the expiry is remembered for a while after the task is removed, and then forgotten", async () => {
  const { client } = await draft(sweeping);
  const { taskId, reply } = client.tool("echo", { text: "hi" }, { keepAlive: 5_000 });
  await reply;
  travel(5_001);
  const told = async () => (await client.about("tasks/get", taskId)).error!.message;
  expect(await told()).toBe("Failed to retrieve task: Task has expired");
  travel(5_001 + 1_800_000);
  expect(await told()).toBe("Failed to retrieve task: Task has expired");
  let hours = 1;
  const muchLater = () => {
    travel(5_001 + ++hours * 3_600_000);
    return told();
  };
  await expect.poll(muchLater, { timeout: 4_000 }).toBe("Failed to retrieve task: Task not found");
});

test("8.2 the maximum keepAlive is enforced: seven days unless configured", async () => {
  const { client } = await draft();
  const { taskId, reply } = client.tool("echo", { text: "hi" }, { keepAlive: Number.MAX_SAFE_INTEGER });
  await reply;
  expect((await client.get(taskId)).keepAlive).toBe(7 * 24 * 3_600_000);
});

test("8.2 a requestor has only so many tasks at once; a cancelled one counts until its engine has stopped it", async () => {
  const { client, scripted } = await draft({ engine: { limits: { concurrentTasks: 2 } } });
  scripted.stopped = undefined;
  const first = await client.created("scripted");
  await client.created("scripted");
  const third = await client.tool("scripted").reply;
  expect(third.error).toMatchObject({
    code: -32000,
    message: expect.stringContaining("Too many tasks at once: at most 2 may run"),
    data: { limit: "concurrentTasks" },
  });
  expect(scripted.starts).toHaveLength(2);
  await client.cancel(first.id);
  await client.reaches(first.taskId, "cancelled");
  expect((await client.tool("scripted").reply).error).toMatchObject({ data: { limit: "concurrentTasks" } });
  scripted.state = { native: "STOPPED", status: "cancelled" };
  await expect
    .poll(async () => (await client.tool("echo", { text: "hi" }).reply).error, { interval: 50 })
    .toBeUndefined();
});

test("8.2 a task that has been refused has left nothing behind", async () => {
  const { client } = await draft({ engine: { limits: { concurrentTasks: 1 } } });
  await client.created("scripted");
  const notices = client.createdNotices();
  const call = client.tool("echo", { text: "hi" });
  expect((await call.reply).error).toMatchObject({ code: -32000 });
  expect((await client.about("tasks/get", call.taskId)).error).toEqual({
    code: -32602,
    message: "Failed to retrieve task: Task not found",
  });
  expect(client.createdNotices()).toEqual(notices);
});
