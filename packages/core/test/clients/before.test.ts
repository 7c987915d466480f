/** Questions before the work starts (`before`), and calls that are made twice (`taskferry.dev/idempotency-key`). */
import { describe, expect, test } from "vitest";
import { type Json, modernRequest, TASKS } from "../support/raw-client.js";
import { calls } from "../support/server-process.js";
import { fixtureEngine, overHttp } from "../support/serving.js";
import { accept, DRAFT_TASK, FORMS, session, stateless, textOf } from "../support/sessions.js";

const ASKS = { ...FORMS, ...TASKS };
const KEY = "taskferry.dev/idempotency-key";
const CALL = { name: "asks_first", arguments: {} };

async function served() {
  const { engine, home } = await fixtureEngine();
  const { url } = await overHttp(engine, { inlineWaitMs: 5_000 });
  const modern = (method: string, params: Json, capabilities: Json = ASKS) =>
    modernRequest(url, method, params, { capabilities });
  const list = async () =>
    (await engine.list({ id: "local", kind: "local", limitKey: "local" }, undefined)).views;
  return { engine, home, url, modern, list };
}

describe("the before hook", () => {
  test("2025-11-25: is asked on the open call, and then there is a task", async () => {
    const { url, list } = await served();
    const client = await session(url);
    let tasksWhenAsked = -1;
    client.answerer = async () => {
      tasksWhenAsked = (await list()).length;
      return accept({ to: "Rome" });
    };
    const created = await client.request("tools/call", { ...CALL, task: {} });
    expect(tasksWhenAsked).toBe(0);
    const { taskId } = created.result.task;
    const { result } = await client.request("tasks/result", { taskId });
    expect(textOf(result)).toContain("Went to Rome");
    expect(client.requests).toHaveLength(1);
  });

  test("2025-11-25: a decline is told as the task's result", async () => {
    const { url } = await served();
    const client = await session(url);
    client.answerer = () => ({ action: "decline" });
    const created = await client.request("tools/call", { ...CALL, task: {} });
    expect(created.result.task.status).toBe("failed");
    const { result } = await client.request("tasks/result", { taskId: created.result.task.taskId });
    expect(result).toMatchObject({ isError: true, content: [{ text: "Then not." }] });
  });

  test("draft: the task is there, and is asked about on its open call", async () => {
    const { url } = await served();
    const client = await session(url);
    client.answerer = () => accept({ to: "Oslo" });
    const { result } = await client.request("tools/call", {
      ...CALL,
      _meta: { [DRAFT_TASK]: { taskId: "mine" } },
    });
    expect(textOf(result)).toContain("Went to Oslo");
  });

  test("2026-07-28: input_required without a task, then on the retry the task without a requestState", async () => {
    const { modern, list } = await served();
    const first = (await modern("tools/call", CALL)).result;
    expect(first.resultType).toBe("input_required");
    expect(first.taskId).toBeUndefined();
    expect(Object.keys(first.inputRequests)).toEqual(["target"]);
    expect(await list()).toEqual([]);
    const inputResponses = { target: accept({ to: "Bern" }) };
    const second = (await modern("tools/call", { ...CALL, inputResponses, requestState: first.requestState }))
      .result;
    expect(second.resultType).toBe("task");
    expect(second.requestState).toBeUndefined();
    const get = async () => (await modern("tasks/get", { taskId: second.taskId })).result;
    await expect.poll(async () => (await get()).status).toBe("completed");
    expect(textOf((await get()).result)).toContain("Went to Bern");
  });

  test.each([
    ["a field of another type", { target: { action: "accept", content: { to: 5 } } }],
    ["a field that is missing", { target: { action: "accept" } }],
    ["no such action", { target: { action: "perhaps" } }],
  ])(
    "2026-07-28: an answer that does not fit (%s) is -32602, and nothing is started",
    async (_what, given) => {
      const { modern, list } = await served();
      const { result } = await modern("tools/call", CALL);
      const retry = { ...CALL, inputResponses: given, requestState: result.requestState };
      expect((await modern("tools/call", retry)).error?.code).toBe(-32602);
      expect(await list()).toEqual([]);
    },
  );

  test("2026-07-28: a requestState answers for the arguments that it was made for, and no others", async () => {
    const { modern } = await served();
    const { result } = await modern("tools/call", CALL);
    const other = { name: "greets", arguments: {}, requestState: result.requestState, inputResponses: {} };
    expect((await modern("tools/call", other)).error?.code).toBe(-32602);
  });

  test.each(["2025-11-25", "2026-07-28"])(
    "%s: a client that cannot be asked gets a task that is held until somebody answers",
    async (generation) => {
      const { url, modern } = await served();
      const poor = await session(url, {});
      const taskId =
        generation === "2025-11-25"
          ? (await poor.request("tools/call", { ...CALL, task: {} })).result.task.taskId
          : (await modern("tools/call", CALL, TASKS)).result.taskId;
      const seen = (await modern("tasks/get", { taskId }, TASKS)).result;
      expect(seen).toMatchObject({ status: "working" });
      expect(seen.statusMessage).toContain("Where to?");
      expect((await poor.request("tasks/get", { taskId })).result.status).toBe("input_required");
      await poor.request("tools/call", {
        name: "task_answer",
        arguments: { taskId, content: { to: "Kyiv" } },
      });
      const end = await poor.request("tools/call", {
        name: "task_status",
        arguments: { taskId, waitSeconds: 10 },
      });
      expect(textOf(end.result)).toContain("Went to Kyiv");
    },
  );

  test("a held task can be cancelled, and is never started", async () => {
    const { modern } = await served();
    const { taskId } = (await modern("tools/call", CALL, TASKS)).result;
    await modern("tasks/cancel", { taskId });
    const { result } = await modern("tasks/get", { taskId });
    expect(result.status).toBe("cancelled");
    await modern("tasks/update", { taskId, inputResponses: { "before.target": accept({ to: "Rome" }) } });
    expect((await modern("tasks/get", { taskId })).result.status).toBe("cancelled");
  });

  test("plain clients: 2025 is asked inline, 2026 on a retry", async () => {
    const { url, modern } = await served();
    const client = await session(url);
    client.answerer = () => accept({ to: "Lima" });
    expect(textOf((await client.request("tools/call", CALL)).result)).toContain("Went to Lima");
    const { result } = await modern("tools/call", CALL, FORMS);
    expect(result.resultType).toBe("input_required");
    const inputResponses = { target: accept({ to: "Quito" }) };
    const retry = { ...CALL, inputResponses, requestState: result.requestState };
    expect(textOf((await modern("tools/call", retry, FORMS)).result)).toContain("Went to Quito");
  });
});

describe("the idempotency key", () => {
  const call = (label: string, key: unknown, more: Json = {}) => ({
    name: "at_engine",
    arguments: { label },
    ...more,
    _meta: { [KEY]: key, ...more._meta },
  });

  test("makes a repeated call the same task, whatever generation repeats it, and starts it once", async () => {
    const { url, modern, home } = await served();
    const client = await session(url);
    const made = (await modern("tools/call", call("one", "k"))).result.taskId;
    expect((await modern("tools/call", call("one", "k"))).result.taskId).toBe(made);
    const as2025 = await client.request("tools/call", call("one", "k", { task: {} }));
    expect(as2025.result.task.taskId).toBe(made);
    void client.request("tools/call", call("one", "k", { _meta: { [DRAFT_TASK]: { taskId: "own" } } }));
    const created = await client.until(() =>
      client.notifications.find(({ method }) => method === "notifications/tasks/created"),
    );
    expect(created.params._meta["modelcontextprotocol.io/related-task"].taskId).toBe(made);
    expect(calls(home, "engine", "start")).toHaveLength(1);
  });

  test("calls at the same time start once", async () => {
    const { url, home } = await served();
    const replies = await Promise.all(
      Array.from({ length: 12 }, (_one, index) =>
        modernRequest(url, "tools/call", call("same", "at once"), { capabilities: TASKS, id: index + 1 }),
      ),
    );
    expect(new Set(replies.map(({ result }) => result.taskId)).size).toBe(1);
    expect(calls(home, "engine", "start")).toHaveLength(1);
  });

  test("plain calls too: the retry of a lost call finds the run", async () => {
    const { engine, home } = await fixtureEngine();
    const { url } = await overHttp(engine, { inlineWaitMs: 50 });
    const first = await stateless(url, "tools/call", call("plain", "p"));
    const second = await stateless(url, "tools/call", call("plain", "p"));
    const idOf = (reply: Json) => reply.result.structuredContent.task.taskId;
    expect(idOf(second)).toBe(idOf(first));
    expect(calls(home, "engine", "start")).toHaveLength(1);
  });

  test("with other arguments is -32602; with another key or none is another task", async () => {
    const { modern, home } = await served();
    const { taskId } = (await modern("tools/call", call("one", "k"))).result;
    const conflict = await modern("tools/call", call("two", "k"));
    expect(conflict.error?.code).toBe(-32602);
    expect(conflict.error?.message).toContain("idempotency key");
    expect((await modern("tools/call", call("one", "l"))).result.taskId).not.toBe(taskId);
    expect(
      (await modern("tools/call", { name: "at_engine", arguments: { label: "one" } })).result.taskId,
    ).not.toBe(taskId);
    expect(calls(home, "engine", "start")).toHaveLength(3);
  });

  test.each([
    ["a number", 7],
    ["an object", {}],
    ["empty", ""],
    ["far too long", "k".repeat(300)],
  ])("that is %s is refused", async (_what, key) => {
    const { modern } = await served();
    expect((await modern("tools/call", call("one", key))).error?.code).toBe(-32602);
  });

  test("is its owner's own", async () => {
    const { engine } = await fixtureEngine();
    const { url } = await overHttp(engine, { verify: (token) => ({ issuer: "test", subject: token }) });
    const as = async (who: string) =>
      (
        await modernRequest(url, "tools/call", call("one", "shared"), {
          capabilities: TASKS,
          headers: { authorization: `Bearer ${who}` },
        })
      ).result.taskId;
    expect(await as("ada")).not.toBe(await as("bob"));
    expect(await as("ada")).toBe(await as("ada"));
  });
});
