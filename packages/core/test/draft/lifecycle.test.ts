/** SEP-1686, 4.3 and 4.4: which statuses follow which, and how a task waits for its client. */
import { expect, test } from "vitest";
import { isTerminal, mayBecome, type Task, type TaskStatus } from "../../src/contract/task.js";
import type { RunState } from "../../src/index.js";
import { sqliteStore } from "../../src/store/sqlite.js";
import { CREATED, row } from "../store/rows.js";
import { relatedTo } from "../support/draft-client.js";
import { draft } from "../support/draft-fixtures.js";
import { tempDir } from "../support/engines.js";
import { gate } from "../support/gate.js";
import { ASKING, QUEUED, RUNNING } from "../support/scripted-engine.js";
import { accept, textOf } from "../support/sessions.js";

/** The document's list, written out. */
const ALLOWED: Record<TaskStatus, TaskStatus[]> = {
  submitted: ["working", "input_required", "completed", "failed", "cancelled", "unknown"],
  working: ["input_required", "completed", "failed", "cancelled", "unknown"],
  input_required: ["working", "completed", "failed", "cancelled", "unknown"],
  completed: [],
  failed: [],
  cancelled: [],
  unknown: [],
};
const STATUSES = Object.keys(ALLOWED) as TaskStatus[];
const DONE: RunState = { native: "DONE", status: "completed", output: { value: { n: 1 } } };

async function aStore() {
  const store = await sqliteStore({ path: `${await tempDir()}/tasks.db` });
  return store;
}

test("4.3 the moves of a task are the document's, and what has none is the end", () => {
  for (const from of STATUSES) {
    const moves = STATUSES.filter((to) => to !== from && mayBecome(from, to));
    expect(new Set(moves), from).toEqual(new Set(ALLOWED[from]));
    expect(isTerminal(from), from).toBe(ALLOWED[from].length === 0);
  }
});

for (const from of STATUSES) {
  test(`4.3 from ${from} the store lets a task go where the document says, and nowhere else`, async () => {
    const store = await aStore();
    for (const to of STATUSES) {
      const stored: Task = await store.insert(row({ status: from }), CREATED);
      const change = store.update(stored, { status: to });
      if (from === to || ALLOWED[from].includes(to)) expect((await change).status).toBe(to);
      else await expect(change).rejects.toMatchObject({ code: "illegal_transition" });
      const kept = from === to || ALLOWED[from].includes(to) ? to : from;
      expect((await store.get(stored.owner, stored.taskId))?.status).toBe(kept);
    }
    await store.close();
  });
}

test("4.3 a task that has ended changes neither its outcome nor when it ended", async () => {
  const store = await aStore();
  const stored = await store.insert(row({ status: "completed", endedAt: 5 }), CREATED);
  for (const patch of [{ outcome: { kind: "cancelled" as const } }, { endedAt: 6 }]) {
    await expect(store.update(stored, patch)).rejects.toMatchObject({ code: "illegal_transition" });
  }
  expect(await store.get(stored.owner, stored.taskId)).toEqual(stored);
  await store.close();
});

test("4.3 a task begins as submitted, for as long as the engine has not answered its start", async () => {
  const { client, scripted } = await draft({ engine: { timing: { startWaitMs: 20 } } });
  scripted.startGate = gate();
  const { taskId, reply } = await client.created("scripted");
  expect(await client.get(taskId)).toMatchObject({ status: "submitted" });
  expect(await client.get(taskId)).toMatchObject({ status: "submitted" });
  expect(scripted.reads).toBe(0);
  scripted.startGate.open();
  await client.reaches(taskId, "working");
  scripted.state = DONE;
  expect((await reply).result.structuredContent).toEqual({ n: 1 });
  expect(scripted.starts).toHaveLength(1);
});

test("4.3 a task goes from submitted to completed where the work ends at once", async () => {
  const { client, scripted } = await draft();
  scripted.state = QUEUED;
  const { taskId, reply } = await client.created("scripted");
  await client.reaches(taskId, "submitted");
  scripted.state = DONE;
  await reply;
  expect(await client.get(taskId)).toMatchObject({ status: "completed" });
});

test("4.3 an engine that goes back to its queue does not bring the task back to submitted", async () => {
  const { client, scripted } = await draft();
  const { taskId } = await client.created("scripted");
  await client.reaches(taskId, "working");
  scripted.state = QUEUED;
  const { reads } = scripted;
  await expect.poll(() => scripted.reads).toBeGreaterThan(reads + 1);
  expect(await client.get(taskId)).toMatchObject({ status: "working" });
  scripted.state = DONE;
});

for (const [status, state] of [
  ["completed", DONE],
  ["failed", { native: "DENIED", status: "failed" }],
  ["cancelled", { native: "STOPPED", status: "cancelled" }],
  ["unknown", { native: "LOST", status: "unknown" }],
] as const) {
  test(`4.3 ${status} is for ever, whatever the engine says later`, async () => {
    const { client, scripted } = await draft();
    scripted.state = state as RunState;
    const { taskId, reply } = await client.created("scripted");
    await reply;
    const ended = await client.reaches(taskId, status);
    scripted.state = status === "completed" ? RUNNING : DONE;
    const { reads } = scripted;
    for (let polls = 0; polls < 3; polls++) expect(await client.get(taskId)).toEqual(ended);
    expect(scripted.reads).toBe(reads);
  });
}

test("4.3 unknown carries an error message", async () => {
  const { client, scripted } = await draft();
  scripted.state = { native: "VANISHED", status: "unknown" };
  const { taskId, reply } = await client.created("scripted");
  expect((await reply).error).toMatchObject({ code: -32603 });
  const { error } = await client.reaches(taskId, "unknown");
  expect(error).toBe("scripted cannot say how the run ended (VANISHED)");
});

test("4.4 a task that asks its client is input_required, and the request names the task", async () => {
  const { client, scripted } = await draft();
  scripted.state = ASKING;
  const { taskId, reply } = await client.created("scripted");
  const request = await client.asked(taskId);
  expect(request).toMatchObject({
    method: "elicitation/create",
    params: { message: "Who?", _meta: relatedTo(taskId) },
  });
  expect(await client.get(taskId)).toMatchObject({ status: "input_required" });
  await client.answer(request, accept({ name: "Ada" }));
  await client.reaches(taskId, "working");
  expect(scripted.answers).toEqual([{ key: "name", answer: accept({ name: "Ada" }) }]);
  scripted.state = DONE;
  await reply;
});

test("4.4 with several requests the task stays input_required until all are answered", async () => {
  const { client, scripted } = await draft();
  const { questions = [] } = ASKING;
  scripted.state = {
    ...ASKING,
    questions: [...questions, { ...questions[0]!, key: "place", message: "Where?" }],
  };
  // What is seen in between is the answer's doing, not the engine's.
  scripted.answerGate = gate();
  const { taskId, reply } = await client.created("scripted");
  const [first, second] = await client.raw.until(
    () => client.raw.requests.length === 2 && client.raw.requests,
  );
  await client.answer(first, accept({ name: "Ada" }));
  await client.raw.request("ping");
  expect(await client.get(taskId)).toMatchObject({ status: "input_required" });
  await client.answer(second!, accept({ name: "London" }));
  await client.reaches(taskId, "working");
  scripted.answerGate.open();
  await expect.poll(() => scripted.answers.length).toBe(2);
  scripted.state = DONE;
  await reply;
});

test("4.4 work that asks several things at once gets every answer", async () => {
  const { client } = await draft();
  client.raw.answerer = ({ params }) => accept({ name: params.message === "Who?" ? "Ada" : "London" });
  const { reply } = client.tool("surveys");
  expect(textOf((await reply).result)).toBe("Ada in London");
});

test("4.4 a question before the work starts is asked on the open call, after the creation notice", async () => {
  const { client } = await draft();
  const { taskId, reply } = await client.created("asks_first");
  const request = await client.asked(taskId);
  expect(await client.get(taskId)).toMatchObject({ status: "input_required" });
  const order = client.raw.received.map(({ method }) => method);
  expect(order.indexOf("notifications/tasks/created")).toBeLessThan(order.indexOf("elicitation/create"));
  await client.answer(request, accept({ name: "Ada" }));
  expect(textOf((await reply).result)).toBe("asked and done");
});
