/** Questions while the work goes on: asked in the asker's generation, answered once, by whoever comes first. */
import { InputRequestsV2Schema } from "@modelcontextprotocol/ext-tasks/core/v2";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { describe, expect, test } from "vitest";
import { type Json, modernRequest, type RawClient, TASKS } from "../support/raw-client.js";
import { fixtureEngine, overHttp } from "../support/serving.js";
import {
  accept,
  DRAFT_RELATED,
  DRAFT_TASK,
  FORMS,
  RELATED,
  session,
  start2025,
  stateless,
  textOf,
} from "../support/sessions.js";

const ASKS = { ...FORMS, ...TASKS };

async function served() {
  const { engine } = await fixtureEngine();
  const { url } = await overHttp(engine, { inlineWaitMs: 10_000 });
  const modern = (method: string, params: Json, capabilities: Json = ASKS) =>
    modernRequest(url, method, params, { capabilities });
  return { engine, url, modern };
}

const elicitation = (client: RawClient): Promise<Json> =>
  client.until(() => client.requests.find(({ method }) => method === "elicitation/create"));
const answer = (client: RawClient, request: Json, result: Json) =>
  client.transport.send({ jsonrpc: "2.0", id: request.id, result });

describe("2025-11-25", () => {
  test("the question comes while tasks/result blocks, and its answer goes on to the work", async () => {
    const { url } = await served();
    const client = await session(url);
    const taskId = await start2025(client, "greets");
    await expect
      .poll(async () => (await client.request("tasks/get", { taskId })).result.status)
      .toBe("input_required");
    const result = client.request("tasks/result", { taskId });
    const request = await elicitation(client);
    expect(ElicitRequestSchema.safeParse(request).error).toBeUndefined();
    expect(request.params._meta[RELATED]).toEqual({ taskId });
    expect(request.params).toMatchObject({ mode: "form", message: "Who is there?" });
    await answer(client, request, accept({ name: "Ada" }));
    expect(textOf((await result).result)).toContain("Hello, Ada");
    expect(client.requests).toHaveLength(1);
  });

  test("what is declined is declined", async () => {
    const { url } = await served();
    const client = await session(url);
    client.answerer = () => ({ action: "decline" });
    const taskId = await start2025(client, "greets");
    const { result } = await client.request("tasks/result", { taskId });
    expect(textOf(result)).toContain("No name (decline)");
  });

  test("an answer that does not fit is asked for again, and the work never sees it", async () => {
    const { url } = await served();
    const client = await session(url);
    const answers = [accept({ name: 7 }), accept({ name: "Ada" })];
    client.answerer = () => answers.shift();
    const taskId = await start2025(client, "greets");
    const { result } = await client.request("tasks/result", { taskId });
    expect(textOf(result)).toContain("Hello, Ada");
    expect(client.requests).toHaveLength(2);
  });

  test("of two sessions that wait, one is asked, and both get the result", async () => {
    const { url } = await served();
    const [first, second] = [await session(url), await session(url)];
    const taskId = await start2025(first, "greets");
    const results = [first.request("tasks/result", { taskId })];
    const request = await elicitation(first);
    results.push(second.request("tasks/result", { taskId }));
    // The second one's request has been served when a later one of its own is answered.
    await second.request("tasks/get", { taskId });
    await answer(first, request, accept({ name: "Ada" }));
    for (const { result } of await Promise.all(results)) expect(textOf(result)).toContain("Hello, Ada");
    expect(second.requests).toEqual([]);
  });

  test("the first answer wins: a live question is called back, and its late answer changes nothing", async () => {
    const { url, modern } = await served();
    const client = await session(url);
    const taskId = await start2025(client, "greets");
    const result = client.request("tasks/result", { taskId });
    const request = await elicitation(client);
    const { result: task } = await modern("tasks/get", { taskId });
    const [key] = Object.keys(task.inputRequests);
    await modern("tasks/update", { taskId, inputResponses: { [key!]: accept({ name: "First" }) } });
    const withdrawn = await client.until(() =>
      client.notifications.find(({ method }) => method === "notifications/cancelled"),
    );
    expect(withdrawn.params.requestId).toBe(request.id);
    await answer(client, request, accept({ name: "Late" }));
    expect(textOf((await result).result)).toContain("Hello, First");
  });

  test("when the client that was asked goes away, the next one is asked", async () => {
    const { url } = await served();
    const [first, second] = [await session(url), await session(url)];
    const taskId = await start2025(first, "greets");
    void first.request("tasks/result", { taskId }).catch(() => {});
    await elicitation(first);
    const result = second.request("tasks/result", { taskId });
    await first.close();
    const request = await elicitation(second);
    await answer(second, request, accept({ name: "Bob" }));
    expect(textOf((await result).result)).toContain("Hello, Bob");
  }, 10_000);

  test("a client that cannot be asked waits, and hears the result that another's answer brought", async () => {
    const { url, modern } = await served();
    const client = await session(url, {});
    const taskId = await start2025(client, "greets");
    const result = client.request("tasks/result", { taskId });
    await expect
      .poll(async () => (await modern("tasks/get", { taskId })).result.status)
      .toBe("input_required");
    const { inputRequests } = (await modern("tasks/get", { taskId })).result;
    const [key] = Object.keys(inputRequests);
    await modern("tasks/update", { taskId, inputResponses: { [key!]: accept({ name: "Eve" }) } });
    expect(textOf((await result).result)).toContain("Hello, Eve");
    expect(client.requests).toEqual([]);
  });

  test("a cancel while the question is live calls it back, and tasks/result says so", async () => {
    const { url } = await served();
    const client = await session(url);
    const taskId = await start2025(client, "greets");
    const result = client.request("tasks/result", { taskId });
    const request = await elicitation(client);
    await client.request("tasks/cancel", { taskId });
    expect((await result).error).toMatchObject({ code: -32000, message: "Task was cancelled" });
    const withdrawn = await client.until(() =>
      client.notifications.find(({ method }) => method === "notifications/cancelled"),
    );
    expect(withdrawn.params.requestId).toBe(request.id);
  });
});

test("draft: the question comes on the open call, with the draft's related task", async () => {
  const { url } = await served();
  const client = await session(url);
  const taskId = "my own";
  const call = client.request("tools/call", {
    name: "greets",
    arguments: {},
    _meta: { [DRAFT_TASK]: { taskId } },
  });
  const request = await elicitation(client);
  expect(request.params._meta[DRAFT_RELATED]).toEqual({ taskId });
  const get = await client.request("tasks/get", { taskId, _meta: { [DRAFT_RELATED]: { taskId } } });
  expect(get.result.status).toBe("input_required");
  await answer(client, request, accept({ name: "Ada" }));
  expect(textOf((await call).result)).toContain("Hello, Ada");
});

describe("2026-07-28", () => {
  async function survey() {
    const face = await served();
    const { result } = await face.modern("tools/call", { name: "surveys", arguments: {} });
    const get = async (capabilities?: Json) =>
      (await face.modern("tasks/get", { taskId: result.taskId }, capabilities)).result;
    const update = (inputResponses: Json) =>
      face.modern("tasks/update", { taskId: result.taskId, inputResponses });
    await expect.poll(async () => (await get()).status).toBe("input_required");
    const { inputRequests } = await get();
    const keyOf = (message: string) =>
      Object.keys(inputRequests).find((key) => inputRequests[key].params.message === message)!;
    return { ...face, get, update, inputRequests, who: keyOf("Who is there?"), where: keyOf("Where?") };
  }

  test("all open questions are shown, and may be answered one by one", async () => {
    const { get, update, inputRequests, who, where } = await survey();
    expect(InputRequestsV2Schema.safeParse(inputRequests).error).toBeUndefined();
    expect(Object.keys(inputRequests)).toHaveLength(2);
    expect((await update({ [who]: accept({ name: "Ada" }) })).result).toMatchObject({
      resultType: "complete",
    });
    const half = await get();
    expect(half.status).toBe("input_required");
    expect(Object.keys(half.inputRequests)).toEqual([where]);
    await update({ [where]: accept({ place: "London" }) });
    await expect.poll(async () => (await get()).status).toBe("completed");
    expect(textOf((await get()).result)).toContain("Ada in London");
  });

  test("unknown and answered keys are ignored, and so are answers after the end", async () => {
    const { get, update, who, where } = await survey();
    const reply = await update({ [who]: accept({ name: "Ada" }), "no such key": accept({}) });
    expect(reply.result).toMatchObject({ resultType: "complete" });
    await update({ [who]: accept({ name: "Too late" }) });
    await update({ [where]: accept({ place: "London" }) });
    await expect.poll(async () => (await get()).status).toBe("completed");
    expect((await update({ [who]: accept({ name: "Much too late" }) })).error).toBeUndefined();
    expect(textOf((await get()).result)).toContain("Ada in London");
  });

  test("an answer that does not fit is -32602 by name, and the question stays open", async () => {
    const { get, update, who } = await survey();
    const { error } = await update({ [who]: accept({ name: ["a secret"] }) });
    expect(error?.code).toBe(-32602);
    expect(error?.message).toContain(who);
    expect(error?.message).not.toContain("a secret");
    expect(Object.keys((await get()).inputRequests)).toContain(who);
    for (const bad of [{ action: "maybe" }, {}, { action: "accept", content: "text" }]) {
      expect((await update({ [who]: bad })).error?.code).toBe(-32602);
    }
    // What is no object the SDK leaves out, as if it had not been sent.
    await update({ [who]: "text" });
    expect(Object.keys((await get()).inputRequests)).toContain(who);
  });

  test.each([
    ["nothing at all", TASKS],
    ["links only", { elicitation: { url: {} }, ...TASKS }],
  ])("a client that declared %s sees a working task, and where to answer", async (_what, capabilities) => {
    const { get } = await survey();
    const task = await get(capabilities);
    expect(task.status).toBe("working");
    expect(task.inputRequests).toBeUndefined();
    expect(task.statusMessage).toContain("Who is there?");
    expect(task.statusMessage).toContain("task_answer");
  });
});

describe("clients that know no tasks", () => {
  test("2025 in a session: asked on the open call, answered with the result", async () => {
    const { url } = await served();
    const client = await session(url);
    client.answerer = () => accept({ name: "Ada" });
    const { result } = await client.request("tools/call", { name: "greets", arguments: {} });
    expect(textOf(result)).toContain("Hello, Ada");
  });

  test.each(["2025 without a session", "2025 that cannot be asked", "2026 that cannot be asked"])(
    "%s: gets the question in words at once, and answers with the companion tools",
    async (kind) => {
      const { url, modern } = await served();
      const poor = kind === "2025 that cannot be asked" ? await session(url, {}) : undefined;
      const call = async (name: string, args: Json) => {
        const params = { name, arguments: args };
        if (poor !== undefined) return (await poor.request("tools/call", params)).result;
        if (kind.startsWith("2026")) return (await modern("tools/call", params, {})).result;
        return (await stateless(url, "tools/call", params)).result;
      };
      const handle = await call("greets", {});
      const { task } = handle.structuredContent;
      expect(task.status).toBe("input_required");
      expect(textOf(handle)).toContain("Who is there?");
      expect(textOf(handle)).toContain(task.taskId);
      expect(textOf(handle)).toContain("task_answer");
      expect(task.questions[0].schema.properties.name).toMatchObject({ type: "string" });
      await call("task_answer", { taskId: task.taskId, content: { name: "Ada" } });
      const end = await call("task_status", { taskId: task.taskId, waitSeconds: 10 });
      expect(textOf(end)).toContain("Hello, Ada");
    },
  );

  test("2026: input_required names no task, and the retry rejoins the same run", async () => {
    const { modern, engine } = await served();
    const params = { name: "greets", arguments: {} };
    const { result } = await modern("tools/call", params, FORMS);
    expect(result.resultType).toBe("input_required");
    expect(result.taskId).toBeUndefined();
    const [key] = Object.keys(result.inputRequests);
    const inputResponses = { [key!]: accept({ name: "Ada" }) };
    const retry = { ...params, inputResponses, requestState: result.requestState };
    const end = await modern("tools/call", retry, FORMS);
    expect(textOf(end.result)).toContain("Hello, Ada");
    const { views } = await engine.list({ id: "local", kind: "local", limitKey: "local" }, undefined);
    expect(views).toHaveLength(1);
  });

  test.each([
    ["cut off", (state: string) => state.slice(0, -3)],
    ["changed", (state: string) => `A${state.slice(1)}`],
    ["made up", () => "eyJ0YXNrSWQiOiJ4In0.AAAA"],
    ["no text", () => 7],
  ])("2026: a requestState that is %s is refused, and nothing is started", async (_what, spoil) => {
    const { modern, engine } = await served();
    const params = { name: "greets", arguments: {} };
    const { result } = await modern("tools/call", params, FORMS);
    const [key] = Object.keys(result.inputRequests);
    const spoiled = await modern(
      "tools/call",
      {
        ...params,
        inputResponses: { [key!]: accept({ name: "Eve" }) },
        requestState: spoil(result.requestState),
      },
      FORMS,
    );
    expect(spoiled.error?.code).toBe(-32602);
    const { views } = await engine.list({ id: "local", kind: "local", limitKey: "local" }, undefined);
    expect(views.map(({ task }) => task.status)).toEqual(["input_required"]);
  });

  test("2026: a requestState opens neither another tool nor another owner's task", async () => {
    const { engine } = await fixtureEngine();
    const { url } = await overHttp(engine, {
      verify: (token) => ({ issuer: "test", subject: token }),
    });
    const as = (who: string, params: Json) =>
      modernRequest(url, "tools/call", params, {
        capabilities: FORMS,
        headers: { authorization: `Bearer ${who}` },
      });
    const { result } = await as("ada", { name: "greets", arguments: {} });
    const [key] = Object.keys(result.inputRequests);
    const stolen = {
      name: "greets",
      arguments: {},
      inputResponses: { [key!]: accept({ name: "Eve" }) },
      requestState: result.requestState,
    };
    expect((await as("eve", stolen)).error?.code).toBe(-32602);
    expect((await as("ada", { ...stolen, name: "surveys" })).error?.code).toBe(-32602);
    expect(textOf((await as("ada", stolen)).result)).toContain("Hello, Eve");
  });
});
