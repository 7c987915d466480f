/** SEP-1686, 4.8: `notifications/cancelled` names the request that made the task. */
import { expect, test } from "vitest";
import type { RunState } from "../../src/index.js";
import { relatedTo } from "../support/draft-client.js";
import { type Draft, draft } from "../support/draft-fixtures.js";
import { gate } from "../support/gate.js";
import { RawClient } from "../support/raw-client.js";
import { ASKING, QUEUED, RUNNING } from "../support/scripted-engine.js";
import { overStdio } from "../support/serving.js";
import { accept, DRAFT_TASK, FORMS, stateless } from "../support/sessions.js";

const DONE: RunState = { native: "DONE", status: "completed", output: { value: { n: 1 } } };

/** Whatever this session had cancelled before has been dealt with: a later cancel of its own has. */
async function settled({ client }: Pick<Draft, "client">): Promise<void> {
  const marker = await client.created("waits");
  await client.cancel(marker.id);
  await client.reaches(marker.taskId, "cancelled");
}

for (const [status, state] of [
  ["submitted", QUEUED],
  ["working", RUNNING],
  ["input_required", ASKING],
] as const) {
  test(`4.8 a task that is ${status} is cancelled by the id of its request, and its engine is told to stop`, async () => {
    const { client, scripted } = await draft();
    scripted.state = state;
    const call = await client.created("scripted");
    await client.reaches(call.taskId, status);
    await client.cancel(call.id);
    await client.reaches(call.taskId, "cancelled");
    await expect.poll(() => scripted.stops).toEqual(scripted.starts);
    expect(scripted.starts).toHaveLength(1);
    // What the engine says afterwards is nothing to this task.
    scripted.state = DONE;
    expect(await client.get(call.taskId)).toMatchObject({ status: "cancelled" });
    expect(call.answered()).toBe(false);
  });
}

test("4.8 a task whose start hangs is cancelled at once, and its run is stopped when it turns out to exist", async () => {
  const { client, scripted } = await draft({ engine: { timing: { startWaitMs: 20 } } });
  scripted.startGate = gate();
  const call = await client.created("scripted");
  await client.cancel(call.id);
  await client.reaches(call.taskId, "cancelled");
  expect(scripted.stops).toEqual([]);
  scripted.startGate.open();
  await expect.poll(() => scripted.stops).toEqual(scripted.starts);
  expect(await client.get(call.taskId)).toMatchObject({ status: "cancelled" });
});

for (const named of ["its request", "its task"]) {
  test(`4.8 a cancel that comes right behind the call and names ${named} is not lost`, async () => {
    const { engine } = await draft();
    const { transport } = overStdio(engine);
    const client = new RawClient(transport);
    await client.initialize(FORMS);
    const { id } = client.send("tools/call", { name: "waits", _meta: { [DRAFT_TASK]: { taskId: "quick" } } });
    await client.notify("notifications/cancelled", {
      requestId: id,
      ...(named === "its task" && { _meta: relatedTo("quick") }),
    });
    const status = async () =>
      (await client.request("tasks/get", { taskId: "quick", _meta: relatedTo("quick") })).result?.status;
    await expect.poll(status, { interval: 10 }).toBe("cancelled");
    expect(client.received.filter((message) => message.id === id)).toEqual([]);
  });
}

test("4.8 the open call is not answered after it was cancelled", async () => {
  const { client, door } = await draft();
  const call = await client.created("waits");
  await client.cancel(call.id);
  await client.reaches(call.taskId, "cancelled");
  door.open();
  await client.tool("echo", { text: "later" }).reply;
  expect(call.answered()).toBe(false);
});

test("4.8 answers that come after the cancel are ignored", async () => {
  const made = await draft();
  const { client, scripted } = made;
  scripted.state = ASKING;
  scripted.stopped = undefined;
  const call = await client.created("scripted");
  const request = await client.asked(call.taskId);
  await client.cancel(call.id);
  await client.reaches(call.taskId, "cancelled");
  await client.answer(request, accept({ name: "late" }));
  await settled(made);
  expect(await client.get(call.taskId)).toMatchObject({ status: "cancelled" });
  expect(scripted.answers).toEqual([]);
});

test("4.8 a question that is open when the task is cancelled is called back", async () => {
  const { client, scripted, connect } = await draft();
  scripted.state = ASKING;
  const call = await client.created("scripted");
  const request = await client.asked(call.taskId);
  // Cancelled from elsewhere: on the cancelled call's own stream nothing may follow.
  const other = await connect();
  await other.cancel("none of its own", relatedTo(call.taskId));
  await client.reaches(call.taskId, "cancelled");
  const withdrawn = await client.raw.until(() =>
    client.raw.notifications.find(({ method }) => method === "notifications/cancelled"),
  );
  expect(withdrawn.params.requestId).toBe(request.id);
});

for (const [status, state] of [
  ["completed", DONE],
  ["failed", { native: "DENIED", status: "failed" }],
  ["unknown", { native: "LOST", status: "unknown" }],
] as const) {
  test(`4.8 a cancel that comes when the task is ${status} is ignored`, async () => {
    const made = await draft();
    const { client, scripted } = made;
    scripted.state = state;
    const call = await client.created("scripted");
    await call.reply;
    const ended = await client.reaches(call.taskId, status);
    await client.cancel(call.id);
    await client.cancel(call.id, relatedTo(call.taskId));
    await settled(made);
    expect(await client.get(call.taskId)).toEqual(ended);
    expect(scripted.stops).toEqual([]);
  });
}

test("4.8 a cancel may name its task, from any session and without knowing the request", async () => {
  const { client, connect } = await draft();
  const call = await client.created("waits");
  const other = await connect();
  await other.cancel(999, relatedTo(call.taskId));
  await client.reaches(call.taskId, "cancelled");
  expect((await call.reply).error).toEqual({ code: -32000, message: "Task was cancelled" });
});

test("4.8 the task that a cancel names counts, not the request id beside it", async () => {
  const { client, connect } = await draft();
  const other = await connect();
  const mine = await client.created("waits");
  const theirs = await other.created("waits");
  expect(theirs.id).toBe(mine.id);
  await client.cancel("unused", relatedTo(theirs.taskId));
  await other.reaches(theirs.taskId, "cancelled");
  expect(await client.get(mine.taskId)).toMatchObject({ status: "working" });
  await client.cancel(mine.id);
});

test("4.8 request ids of two sessions do not mix", async () => {
  const { client, connect } = await draft();
  const other = await connect();
  const mine = [await client.created("waits"), await client.created("waits")];
  const theirs = [await other.created("waits"), await other.created("waits")];
  expect(theirs.map(({ id }) => id)).toEqual(mine.map(({ id }) => id));
  await client.cancel(mine[0]!.id);
  await client.reaches(mine[0]!.taskId, "cancelled");
  await other.cancel(theirs[1]!.id);
  await other.reaches(theirs[1]!.taskId, "cancelled");
  for (const { taskId } of [mine[1]!, theirs[0]!]) {
    expect(await client.get(taskId)).toMatchObject({ status: "working" });
  }
});

test("4.8 the request ids 7 and '7' are two requests", async () => {
  const made = await draft();
  const { client } = made;
  const call = await client.created("waits");
  await client.cancel(String(call.id));
  await settled(made);
  await client.reaches(call.taskId, "working");
  await client.cancel(call.id);
  await client.reaches(call.taskId, "cancelled");
});

test("4.8 a request id from outside of any session cancels nothing", async () => {
  const made = await draft();
  const call = await made.client.created("waits");
  await stateless(made.url, "notifications/cancelled", { requestId: call.id });
  await settled(made);
  await made.client.reaches(call.taskId, "working");
});

test("4.8 a task of 2025-11-25 is not cancelled by notifications/cancelled", async () => {
  const made = await draft();
  const { raw } = made.client;
  const { id, reply } = raw.send("tools/call", { name: "waits", task: {} });
  const { taskId } = (await reply).result.task;
  await raw.notify("notifications/cancelled", { requestId: id });
  await raw.notify("notifications/cancelled", { requestId: id, _meta: relatedTo(taskId) });
  await settled(made);
  await made.client.reaches(taskId, "working");
  made.door.open();
  await made.client.reaches(taskId, "completed");
});

test("4.8 a connection that is lost does not cancel the task", async () => {
  const { client, connect, door } = await draft();
  const call = await client.created("waits");
  await client.raw.close();
  const later = await connect();
  await later.reaches(call.taskId, "working");
  door.open();
  await later.reaches(call.taskId, "completed");
});
