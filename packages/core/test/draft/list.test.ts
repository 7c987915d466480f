/** SEP-1686, 4.9 and 4.10: listing and deleting tasks. */
import { expect, test } from "vitest";
import { principalOwner } from "../../src/contract/owner.js";
import { draft } from "../support/draft-fixtures.js";
import { ASKING, QUEUED, RUNNING } from "../support/scripted-engine.js";
import { session } from "../support/sessions.js";

const tokens = {
  http: { verify: (token: string) => ({ issuer: "test", subject: token }) },
  client: { headers: { authorization: "Bearer ann" } },
};

/** A client that has this many tasks. */
async function many(count: number) {
  const made = await draft(tokens);
  const owner = principalOwner({ issuer: "test", subject: "ann" });
  const ids = Array.from({ length: count }, (_, n) => `t${n}`);
  const create = (taskId: string) =>
    made.engine.create({ owner, generation: "draft", workflow: "echo", arguments: { text: taskId }, taskId });
  await Promise.all(ids.map(create));
  // From here on the session is known to speak the draft.
  await made.client.get("t0");
  return { ...made, ids };
}

test("4.9 tasks/list comes in pages with a cursor, and together they hold every task once", async () => {
  const { client, ids } = await many(105);
  const sizes: number[] = [];
  const listed: string[] = [];
  let cursor: string | undefined;
  do {
    const { result } = await client.list(cursor);
    sizes.push(result.tasks.length);
    listed.push(...result.tasks.map(({ taskId }: { taskId: string }) => taskId));
    cursor = result.nextCursor;
  } while (cursor !== undefined);
  expect(sizes).toEqual([50, 50, 5]);
  expect(listed.sort()).toEqual(ids.sort());
});

test("4.9 a page that is followed by nothing has no cursor", async () => {
  const { client } = await draft();
  expect((await client.list()).result).toEqual({ tasks: [] });
  await client.tool("echo", { text: "hi" }).reply;
  expect("nextCursor" in (await client.list()).result).toBe(false);
});

test("4.9 a cursor that was not handed out is refused: invented, tampered with, another's, not a string", async () => {
  const { client, connect } = await many(60);
  const { nextCursor } = (await client.list()).result;
  const [body, mac] = nextCursor.split(".");
  const position = Buffer.from(JSON.stringify([Date.now(), "t1"])).toString("base64url");
  for (const cursor of [
    "",
    "x",
    "1",
    `${position}.${mac}`,
    `${body}.${mac.slice(1)}x`,
    body,
    `${nextCursor}x`,
  ]) {
    expect((await client.list(cursor)).error, cursor).toEqual({
      code: -32602,
      message: "Invalid cursor: pass nextCursor of an earlier page back unchanged, or none",
    });
  }
  for (const cursor of [7, null, {}, [nextCursor]]) {
    expect((await client.list(cursor)).error).toMatchObject({ code: -32602 });
  }
  const bob = await connect({ headers: { authorization: "Bearer bob" } });
  expect((await bob.list(nextCursor)).error).toMatchObject({ code: -32602 });
  expect((await client.list(nextCursor)).result.tasks).toHaveLength(10);
});

test("4.9 every task that tasks/get finds is listed, whatever its status and whichever generation made it", async () => {
  const { client, scripted, door, url } = await draft();
  const ids = new Set<string>();
  for (const state of [QUEUED, RUNNING, ASKING, { native: "LOST", status: "unknown" } as const]) {
    scripted.state = state;
    const { taskId } = await client.created("scripted");
    await client.reaches(taskId, state.status);
    ids.add(taskId);
  }
  for (const tool of ["echo", "fails", "refuses"]) {
    const call = client.tool(tool, tool === "echo" ? { text: "hi" } : {});
    await call.reply;
    ids.add(call.taskId);
  }
  const cancelled = await client.created("waits");
  await client.cancel(cancelled.id);
  await client.reaches(cancelled.taskId, "cancelled");
  ids.add(cancelled.taskId);
  const other = await session(url);
  const { result } = await other.request("tools/call", { name: "waits", task: {} });
  ids.add(result.task.taskId);
  await other.request("tools/call", { name: "echo", arguments: { text: "plain" } });
  // A list reads nothing at the engine, a poll does: afterwards both tell the same.
  for (const { taskId } of await client.listAll()) await client.get(taskId);
  const listed = await client.listAll();
  expect(listed.map(({ taskId }) => taskId)).toEqual(expect.arrayContaining([...ids]));
  for (const entry of listed) {
    const { _meta, ...task } = await client.get(entry.taskId);
    expect(task).toEqual(entry);
  }
  door.open();
});

test("4.9 a session that anonymous strangers may open lists the tasks that it can get", async () => {
  const { client } = await draft({ http: { allowAnonymous: true } });
  const { taskId, reply } = client.tool("echo", { text: "hi" });
  await reply;
  await client.get(taskId);
  expect((await client.listAll()).map((task) => task.taskId)).toEqual([taskId]);
});

test("4.9 a client that has shown by its polls that it speaks the draft is listed its tasks in the draft's shape", async () => {
  const { client, connect } = await draft();
  const { taskId, reply } = client.tool("echo", { text: "hi" });
  await reply;
  const later = await connect();
  await later.get(taskId);
  expect((await later.listAll()).map((task) => task.taskId)).toEqual([taskId]);
});

for (const [status, state] of [
  ["submitted", QUEUED],
  ["working", RUNNING],
  ["input_required", ASKING],
] as const) {
  test(`4.10 a task that is ${status} is not deleted, and goes on`, async () => {
    const { client, scripted } = await draft();
    scripted.state = state;
    const { taskId, reply } = await client.created("scripted");
    await client.reaches(taskId, status);
    expect((await client.delete(taskId)).error).toEqual({
      code: -32602,
      message: `A task that is ${status} cannot be deleted: cancel it first`,
    });
    expect(scripted.stops).toEqual([]);
    scripted.state = { native: "DONE", status: "completed" };
    await reply;
    expect(await client.get(taskId)).toMatchObject({ status: "completed" });
  });
}

for (const [status, state] of [
  ["completed", { native: "DONE", status: "completed" }],
  ["failed", { native: "DENIED", status: "failed" }],
  ["cancelled", { native: "STOPPED", status: "cancelled" }],
  ["unknown", { native: "LOST", status: "unknown" }],
] as const) {
  test(`4.10 a task that is ${status} is deleted with everything about it, and its id is free again`, async () => {
    const { client, scripted } = await draft();
    scripted.state = state;
    const { taskId, reply } = await client.created("scripted");
    await reply;
    expect((await client.delete(taskId)).error).toBeUndefined();
    const { error } = await client.about("tasks/get", taskId);
    expect(error!.message).toBe("Failed to retrieve task: Task not found");
    expect((await client.delete(taskId)).error!.message).toBe("Failed to delete task: Task not found");
    expect(await client.listAll()).toEqual([]);
    expect((await client.tool("echo", { text: "again" }, { taskId }).reply).error).toBeUndefined();
  });
}

test("4.10 a cancelled task is deleted once its engine has stopped it, not before", async () => {
  const { client, scripted } = await draft();
  scripted.stopped = undefined;
  const { id, taskId } = await client.created("scripted");
  await client.cancel(id);
  await client.reaches(taskId, "cancelled");
  expect((await client.delete(taskId)).error).toMatchObject({
    code: -32602,
    message: expect.stringContaining("has not confirmed its stop"),
  });
  scripted.state = { native: "STOPPED", status: "cancelled" };
  await expect.poll(async () => (await client.delete(taskId)).error, { interval: 20 }).toBeUndefined();
});
