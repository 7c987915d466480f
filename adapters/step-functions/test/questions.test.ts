/** Against the protocol server: task tokens, heartbeats and activities as AWS has them. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ACCOUNT, acceptThenRefuse, ProtocolServer, refuse } from "../emulator/src/protocol-server.js";
import { explainSfn, type StepFunctionsOptions, stepFunctions } from "../src/index.js";
import { Run } from "./support.js";

const ACTIVITY = `${ACCOUNT}:activity:sign`;

let server: ProtocolServer;
let adapters: ReturnType<typeof stepFunctions>[] = [];
beforeEach(async () => {
  server = await ProtocolServer.open();
});
afterEach(async () => {
  await Promise.all(adapters.map((adapter) => adapter.close?.()));
  adapters = [];
  await server.close();
});

function adapterFor(options: Partial<StepFunctionsOptions> = {}) {
  const adapter = stepFunctions({
    stateMachineArn: server.createMachine("deploy"),
    client: server.client(),
    ...options,
  });
  adapters.push(adapter);
  return adapter;
}
async function started(options: Partial<StepFunctionsOptions> = {}) {
  const run = await Run.start(adapterFor(options), {});
  return { run, execution: server.execution((run.ref as { executionArn: string }).executionArn) };
}
const keysOf = async (run: Run) => ((await run.read()).questions ?? []).map(({ key }) => key);

describe("task tokens", () => {
  it("go back as they came, with + / and =", async () => {
    const { run, execution } = await started();
    const { token } = execution.main.waitForToken("Approve", (taskToken) => ({ MessageBody: { taskToken } }));
    const state = await run.read();
    expect(state).toMatchObject({
      status: "input_required",
      message: "In state Approve",
      questions: [{ message: 'The workflow deploy waits for an answer in state "Approve".' }],
    });
    await run.answer(state.questions![0]!.key, { yes: true });
    expect(server.calls.at(-1)).toMatchObject({
      operation: "SendTaskSuccess",
      input: { taskToken: token, output: '{"yes":true}' },
    });
    expect(state.questions![0]!.key).not.toContain(token.slice(0, 8));
  });

  it("make a new question each time that a state waits", async () => {
    const { run, execution } = await started();
    execution.main.waitForToken("Approve", (taskToken) => ({ taskToken }));
    const [first] = await keysOf(run);
    expect(await keysOf(run)).toEqual([first]);
    await run.answer(first!, {});
    expect(await keysOf(run)).toEqual([]);
    execution.main.exit().waitForToken("Approve", (taskToken) => ({ taskToken }));
    const [second] = await keysOf(run);
    expect(second).not.toBe(first);
  });

  it("are found where they are in a string, with schema and message", async () => {
    const { run, execution } = await started();
    const schema = { type: "object", properties: { size: { type: "integer" } } };
    execution.main.waitForToken("Ask", (TaskToken) => ({
      FunctionName: "ask",
      Payload: JSON.stringify({ inner: [{ TaskToken, message: "Which size?", schema }] }),
    }));
    expect((await run.read()).questions).toMatchObject([{ message: "Which size?", schema }]);
  });

  it("are found under paths of your own", async () => {
    const questions = { tokenPath: "$.Body.callback.id", messagePath: "Body.text", schemaPath: "Body.form" };
    const { run, execution } = await started({ questions });
    const form = { type: "object", properties: { ok: { type: "boolean" } } };
    const { token } = execution.main.waitForToken("Ask", (id) => ({
      Body: { callback: { id }, text: "Well?", form },
    }));
    const state = await run.read();
    expect(state.questions).toMatchObject([{ message: "Well?", schema: form }]);
    await run.answer(state.questions![0]!.key, { ok: true });
    expect(server.calls.at(-1)?.input.taskToken).toBe(token);
  });

  it("leave out a schema that no client can draw", async () => {
    const { run, execution } = await started();
    const schema = { type: "object", properties: { deep: { type: "object", properties: {} } } };
    execution.main.waitForToken("Ask", (taskToken) => ({ taskToken, message: "Well?", schema }));
    expect((await run.read()).questions).toEqual([{ key: expect.any(String), message: "Well?" }]);
  });

  it("are no question when they were given to somebody else", async () => {
    const { run, execution } = await started();
    execution.main.waitForToken("Call back", () => ({ JobName: "nightly" }));
    expect(await run.read()).toMatchObject({ status: "working", message: "In state Call back" });
  });

  it("are asked in parallel, and each answer closes its own", async () => {
    const { run, execution } = await started();
    const [left, right] = execution.main.parallel("Both", 2);
    const a = left!.waitForToken("Legal", (taskToken) => ({ taskToken, message: "Legal?" }));
    const b = right!.waitForToken("Finance", (taskToken) => ({ taskToken, message: "Finance?" }));
    const [first, second] = (await run.read()).questions ?? [];
    expect([first?.message, second?.message]).toEqual(["Legal?", "Finance?"]);
    await run.answer(second!.key, {});
    expect([a.open, b.open]).toEqual([true, false]);
    expect(await keysOf(run)).toEqual([first!.key]);
  });

  it("are read once, although their questions are told with every read", async () => {
    server.pageSize = 10;
    const { run, execution } = await started();
    const [left, right] = execution.main.parallel("Both", 2);
    left!.waitForToken("Approve", (taskToken) => ({ taskToken }));
    right!.enter("Busy");
    for (let step = 0; step < 50; step++) right!.add("TaskScheduled");
    const dataPages = () => server.calls.filter(({ input }) => input.includeExecutionData === true).length;
    const [key] = await keysOf(run);
    const pages = dataPages();
    expect(pages).toBeGreaterThan(1);
    expect(await keysOf(run)).toEqual([key]);
    expect(dataPages()).toBe(pages);
    // Another process reads them for itself.
    expect(await keysOf(run.with(adapterFor()))).toEqual([key]);
    expect(dataPages()).toBe(2 * pages);
  });

  it("let the author shape what the machine gets", async () => {
    const toOutput: NonNullable<Exclude<StepFunctionsOptions["questions"], false | undefined>["toOutput"]> = (
      answer,
      { state },
    ) => ({
      state,
      approved: answer.action === "accept",
    });
    const { run, execution } = await started({ questions: { toOutput } });
    execution.main.waitForToken("Approve", (taskToken) => ({ taskToken }));
    const [key] = await keysOf(run);
    await run.answer(key!, { any: 1 });
    expect(server.calls.at(-1)?.input.output).toBe('{"approved":true,"state":"Approve"}');
  });
});

describe("answers", () => {
  async function asked() {
    const { run, execution } = await started();
    const token = execution.main.waitForToken("Approve", (taskToken) => ({ taskToken }));
    const [key] = await keysOf(run);
    return { run, execution, token, key: key! };
  }

  it("decline with SendTaskFailure", async () => {
    const { run, key } = await asked();
    await run.answer(key);
    expect(server.calls.at(-1)).toMatchObject({ operation: "SendTaskFailure", input: { error: "Declined" } });
  });

  it("count as delivered when only the response was lost", async () => {
    const { run, key } = await asked();
    // The SDK's second attempt hears that the token is closed.
    server.next("SendTaskSuccess", acceptThenRefuse("InternalServerError"));
    await run.answer(key, { ok: 1 });
    expect(server.countOf("SendTaskSuccess")).toBe(2);
    // The same from core, which delivers again after a crash.
    await run.answer(key, { ok: 1 });
    expect(server.countOf("SendTaskSuccess")).toBe(2);
    expect(await run.answer(key, { ok: 2 }).catch(explainSfn)).toMatchObject({ kind: "gone" });
  });

  it("are gone with the token", async () => {
    const { run, execution, key } = await asked();
    execution.fail("Approve.Timeout", "Nobody came");
    expect(await run.answer(key, {}).catch(explainSfn)).toMatchObject({ kind: "gone", code: "TaskTimedOut" });
    expect(await run.answer("event-99", {}).catch(explainSfn)).toMatchObject({ kind: "gone" });
    expect((await run.read()).questions).toBeUndefined();
  });

  it("are refused over 262,144 bytes, before they are sent", async () => {
    const { run, key } = await asked();
    expect(await run.answer(key, { text: "x".repeat(262_144) }).catch(explainSfn)).toMatchObject({
      kind: "rejected",
    });
    expect(server.countOf("SendTaskSuccess")).toBe(0);
  });

  it("wait when AWS throttles", async () => {
    const { run, key, token } = await asked();
    server.next("SendTaskSuccess", ...[1, 2, 3].map(() => refuse("ThrottlingException")));
    expect(await run.answer(key, {}).catch(explainSfn)).toMatchObject({ kind: "retry" });
    await run.answer(key, {});
    expect(token.open).toBe(false);
  });
});

describe("heartbeats", () => {
  it("go on between reads, until the token is closed", async () => {
    const { run, execution } = await started();
    const wait = { heartbeatInSeconds: 1 };
    const token = execution.main.waitForToken("Approve", (taskToken) => ({ taskToken }), wait);
    expect(await keysOf(run)).toHaveLength(1);
    await vi.waitFor(() => expect(token.heartbeats).toBeGreaterThanOrEqual(3), { timeout: 5_000 });
    execution.abort();
    const seen = () => server.countOf("SendTaskHeartbeat");
    // The next one is told that the token is closed, and then there are no more.
    const before = seen();
    await vi.waitFor(() => expect(seen()).toBeGreaterThan(before), { timeout: 5_000 });
    expect(server.calls.filter(({ operation }) => operation === "SendTaskHeartbeat").length).toBe(before + 1);
  });

  it("are not sent for a state that wants none, and not missed where they are forbidden", async () => {
    const { run, execution } = await started();
    execution.main.waitForToken("Approve", (taskToken) => ({ taskToken }));
    await run.read();
    expect(server.countOf("SendTaskHeartbeat")).toBe(0);
    execution.main
      .add("TaskSucceeded")
      .exit()
      .waitForToken("Sign", (taskToken) => ({ taskToken }), { heartbeatInSeconds: 60 });
    server.next("SendTaskHeartbeat", refuse("AccessDeniedException"));
    expect(await keysOf(run)).toHaveLength(1);
  });

  it("end a question whose token has died", async () => {
    const { run, execution } = await started();
    execution.main.waitForToken("Approve", (taskToken) => ({ taskToken }), { heartbeatInSeconds: 60 });
    server.next("SendTaskHeartbeat", refuse("TaskTimedOut"));
    expect(await keysOf(run)).toEqual([]);
  });
});

describe("activities", () => {
  const activity = { activityArn: ACTIVITY };
  const schedule = (
    execution: Awaited<ReturnType<typeof started>>["execution"],
    message: string,
    more = {},
  ) =>
    execution.main.scheduleActivity("Sign", ACTIVITY, {
      execution: execution.executionArn,
      message,
      ...more,
    });

  it("ask with the token in the ref, and answer with it in a new process", async () => {
    const { run, execution } = await started({ activity });
    const task = schedule(execution, "Sign?");
    const [question] = (await run.until("input_required")).questions ?? [];
    expect(question).toMatchObject({ key: expect.stringMatching(/^activity-/), message: "Sign?" });
    expect(run.ref).toMatchObject({ activityTasks: [{ token: task.token, message: "Sign?" }] });

    const later = run.with(adapterFor({ activity }));
    expect((await later.read()).questions).toEqual([question]);
    await later.answer(question!.key, { name: "Ada" });
    expect(server.calls.at(-1)).toMatchObject({ input: { taskToken: task.token, output: '{"name":"Ada"}' } });
    expect((await later.read()).questions).toBeUndefined();
    expect(later.ref).toEqual({ executionArn: execution.executionArn });
  });

  it("keep another execution's task alive until that execution is read, again if its ref was not stored", async () => {
    const adapter = adapterFor({ activity });
    const [a, b] = [await Run.start(adapter, { n: 1 }), await Run.start(adapter, { n: 2 })];
    const executionOf = (run: Run) => server.execution((run.ref as { executionArn: string }).executionArn);
    const first = schedule(executionOf(a), "A?");
    schedule(executionOf(b), "B?");
    // B is read first; the activity gives A's task.
    await b.until("input_required");
    expect(first.heartbeats).toBeGreaterThan(0);
    // A is read, but the process dies before its ref is stored: the row still has the old one.
    const unsaved = a.with(adapter);
    const [question] = (await unsaved.read()).questions ?? [];
    expect(question?.message).toBe("A?");
    expect((await a.read()).questions).toEqual([question]);
    expect((await b.read()).questions).toMatchObject([{ message: "B?" }]);
  });

  it("drop a task that was closed elsewhere", async () => {
    const { run, execution } = await started({ activity });
    const task = schedule(execution, "Sign?");
    await run.until("input_required");
    task.open = false;
    execution.main.add("ActivityTimedOut");
    expect((await run.read()).questions).toBeUndefined();
    expect(run.ref).toEqual({ executionArn: execution.executionArn });
  });

  it("give a task that names no execution back only where that is wanted", async () => {
    const { run, execution } = await started({ activity });
    execution.main.scheduleActivity("Sign", ACTIVITY, { message: "Whose?" });
    expect(await run.read()).toMatchObject({ status: "working", message: "In state Sign" });
    expect(server.countOf("SendTaskFailure")).toBe(0);

    const giving = await started({ activity: { ...activity, giveBack: true } });
    giving.execution.main.scheduleActivity("Sign", ACTIVITY, { message: "Whose?" });
    await giving.run.read();
    await vi.waitFor(() => expect(server.countOf("SendTaskFailure")).toBe(1));
    expect(server.calls.at(-1)?.input.error).toBe("Taskferry.NotOurs");
  });

  it("let a stranger's task go after a while", async () => {
    const { run, execution } = await started({ activity: { ...activity, holdMs: 1, giveBack: true } });
    const foreign = `${ACCOUNT}:execution:elsewhere:1`;
    execution.main.scheduleActivity("Sign", ACTIVITY, { execution: foreign });
    await vi.waitFor(async () => {
      await run.read();
      expect(server.countOf("SendTaskFailure")).toBe(1);
    });
  });

  it("do not disturb a run when the activity cannot be polled", async () => {
    const { run, execution } = await started({ activity });
    schedule(execution, "Sign?");
    server.next("GetActivityTask", ...[1, 2, 3].map(() => refuse("ActivityWorkerLimitExceeded")));
    expect((await run.read()).status).toBe("working");
    await run.until("input_required");
  });
});
