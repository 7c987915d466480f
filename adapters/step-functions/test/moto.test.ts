/** Against moto, which runs real state machines but knows neither activities, nor Express, nor redrives. */
import { ListExecutionsCommand } from "@aws-sdk/client-sfn";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createQueue } from "../emulator/src/client.js";
import { openLane } from "../emulator/src/lane.js";
import {
  adoptExecutions,
  discoverStateMachines,
  explainSfn,
  type StepFunctionsOptions,
  stepFunctions,
} from "../src/index.js";
import { createMachine, fixture, newKey, Run } from "./support.js";

const lane = await openLane("moto");

describe.skipIf(lane === undefined)("moto", { timeout: 60_000 }, () => {
  const client = lane?.client() as NonNullable<ReturnType<NonNullable<typeof lane>["client"]>>;
  let queueUrl = "";

  beforeAll(async () => {
    queueUrl = await createQueue(lane?.endpoint ?? "", "approvals");
    expect(queueUrl).toContain("approvals");
  });
  afterAll(async () => {
    client?.destroy();
    await lane?.close();
  });

  function adapterFor(stateMachineArn: string, options: Partial<StepFunctionsOptions> = {}) {
    return stepFunctions({ stateMachineArn, client, ...options });
  }
  async function machine(name: string) {
    return createMachine(client, fixture(name, { ApprovalQueueUrl: queueUrl }));
  }

  it("runs a machine and returns its output", async () => {
    const adapter = adapterFor(await machine("long"));
    const run = await Run.start(adapter, { topic: "ferries", seconds: 0 });
    const state = await run.until("completed");
    expect(state.native).toBe("SUCCEEDED");
    expect(state.output?.value).toEqual({ topic: "ferries", sources: ["alpha", "beta"], pages: 12 });
  });

  it("tells the current state", async () => {
    const run = await Run.start(adapterFor(await machine("long")), { topic: "ferries", seconds: 30 });
    const state = await run.until("working", ({ message }) => expect(message).toBe("In state Analyse"));
    expect(state).toMatchObject({ native: "RUNNING", attempt: 0 });
    expect(state.url).toMatch(
      /^https:\/\/us-east-1\.console\.aws\.amazon\.com\/states\/home\?region=us-east-1#/,
    );
  });

  it("tells all current states of Parallel and Map, and how far the Map is", async () => {
    const run = await Run.start(adapterFor(await machine("parallel-map")), {
      seconds: 20,
      images: ["a", "b", "c"],
    });
    const state = await run.until("working", ({ message }) =>
      expect(message).toBe("In states Warm up, Resize ×3"),
    );
    expect(state.progress).toEqual({ done: 0, total: 3 });
  });

  it("finishes Parallel and Map", async () => {
    const run = await Run.start(adapterFor(await machine("parallel-map")), {
      seconds: 0,
      images: ["a", "b"],
    });
    const { output } = await run.until("completed");
    expect(output?.value).toEqual([expect.anything(), [expect.anything(), expect.anything()]]);
  });

  it("tells a failure with its error, the sentence in its JSON cause, and the state", async () => {
    const run = await Run.start(adapterFor(await machine("choice")), { amount: 500 });
    const { failure, native } = await run.until("completed");
    expect(native).toBe("FAILED");
    expect(failure).toMatchObject({
      code: "Order.TooMuch",
      message: 'State "Too much": The amount is over the limit of 100',
      value: { state: "Too much", cause: { errorType: "LimitError" } },
    });
  });

  it("takes the other way of the Choice", async () => {
    const run = await Run.start(adapterFor(await machine("choice")), { amount: 5 });
    expect((await run.until("completed")).output?.value).toEqual({ amount: 5 });
  });

  it("tells a timeout as a failure", async () => {
    const run = await Run.start(adapterFor(await machine("timeout")), {});
    const { native, failure } = await run.until("completed");
    expect(native).toBe("TIMED_OUT");
    expect(failure?.code).toBe("States.Timeout");
    expect(failure?.message).toContain("Sleep");
  });

  it("stops a run in mid-Wait, again and again, and it stays cancelled", async () => {
    const run = await Run.start(adapterFor(await machine("long")), { topic: "ferries", seconds: 2 });
    await run.until("working");
    await run.stop();
    await run.stop();
    await run.until("cancelled");
    await run.stop();
    // Longer than the Wait would have gone on.
    const until = Date.now() + 3_000;
    while (Date.now() < until) expect((await run.read()).status).toBe("cancelled");
  });

  it("asks and delivers the answer", async () => {
    const run = await Run.start(adapterFor(await machine("approval")), { service: "billing" });
    const { questions = [] } = await run.until("input_required");
    expect(questions).toEqual([
      {
        key: expect.stringMatching(/^event-\d+$/),
        message: "Deploy billing?",
        schema: expect.objectContaining({ required: ["environment"] }),
      },
    ]);
    await run.answer(questions[0]!.key, { environment: "staging", note: "go" });
    const { output } = await run.until("completed");
    expect(output?.value).toEqual({ service: "billing", environment: "staging", deployed: true });
  });

  it("tells the machine that the client declined", async () => {
    const run = await Run.start(adapterFor(await machine("approval")), { service: "billing" });
    const { questions = [] } = await run.until("input_required");
    await run.answer(questions[0]!.key);
    expect((await run.until("completed")).output?.value).toEqual({ service: "billing", deployed: false });
  });

  it("asks two questions at once and takes their answers in any order, from any process", async () => {
    const arn = await machine("two-approvals");
    const run = await Run.start(adapterFor(arn), {});
    const { questions = [] } = await run.until("input_required", ({ questions }) =>
      expect(questions).toHaveLength(2),
    );
    const finance = questions.find(({ message }) => message === "Finance?");
    await run.answer(finance!.key, { ok: true });
    const again = run.with(adapterFor(arn));
    const rest = await again.until("input_required", ({ questions }) => expect(questions).toHaveLength(1));
    expect(rest.questions?.[0]?.message).toBe("Legal?");
    await again.answer(rest.questions![0]!.key, { ok: false });
    expect((await again.until("completed")).output?.value).toEqual([{ ok: false }, { ok: true }]);
  });

  it("takes an answer a second time, but no other answer to a question that is closed", async () => {
    const run = await Run.start(adapterFor(await machine("approval")), { service: "billing" });
    const { questions = [] } = await run.until("input_required");
    const { key } = questions[0]!;
    await run.answer(key, { environment: "staging" });
    await run.until("completed");
    await run.answer(key, { environment: "staging" });
    const error = await run.answer(key, { environment: "production" }).catch((error: unknown) => error);
    expect(explainSfn(error).kind).toBe("gone");
  });

  it("does not ask where questions are off or the state is not one that asks", async () => {
    const arn = await machine("approval");
    for (const questions of [false, { states: ["Deploy"] }] as const) {
      const run = await Run.start(adapterFor(arn, { questions }), { service: "billing" });
      const state = await run.until("working", ({ message }) => expect(message).toBe("In state Approve"));
      expect(state.questions).toBeUndefined();
    }
  });

  it("starts nothing new for the same key, running or ended", async () => {
    const arn = await machine("long");
    const key = newKey();
    const first = await Run.start(adapterFor(arn), { topic: "a", seconds: 1 }, key);
    const again = await Run.start(adapterFor(arn), { seconds: 1, topic: "a" }, key, true);
    expect(again.ref).toEqual(first.ref);
    await first.until("completed");
    const after = await Run.start(adapterFor(arn), { topic: "a", seconds: 1 }, key, true);
    expect(after.ref).toEqual(first.ref);
    const { executions } = await client.send(new ListExecutionsCommand({ stateMachineArn: arn }));
    expect(executions).toHaveLength(1);
  });

  it("finds the run of a key, and none for another", async () => {
    const arn = await machine("long");
    const run = await Run.start(adapterFor(arn), { topic: "a", seconds: 0 });
    expect((await run.find())?.ref).toEqual(run.ref);
    const other = new Run(adapterFor(arn), newKey(), { ref: null });
    await expect(other.find()).rejects.toMatchObject({ verdict: { kind: "retry" } });
    expect(await other.find(Date.now() - 120_000)).toBeUndefined();
  });

  it("runs 25 tasks at once", async () => {
    const arn = await machine("long");
    const adapter = adapterFor(arn);
    const inputs = Array.from({ length: 25 }, (_, index) => ({ topic: `topic ${index}`, seconds: 1 }));
    const runs = await Promise.all(inputs.map((input) => Run.start(adapter, input)));
    const states = await Promise.all(runs.map((run) => run.until("completed")));
    expect(states.map(({ output }) => output?.value)).toMatchObject(inputs.map(({ topic }) => ({ topic })));
    const { executions } = await client.send(new ListExecutionsCommand({ stateMachineArn: arn }));
    expect(executions).toHaveLength(25);
  });

  it("reads a stored run with a new adapter", async () => {
    const arn = await machine("long");
    const run = await Run.start(adapterFor(arn), { topic: "a", seconds: 1 });
    await adapterFor(arn).close?.();
    expect((await run.with(adapterFor(arn)).until("completed")).output?.value).toMatchObject({ topic: "a" });
  });

  it("adopts an execution that somebody else started, and none of another machine", async () => {
    const arn = await machine("long");
    const run = await Run.start(adapterFor(arn), { topic: "a", seconds: 1 });
    const { executionArn } = run.ref as { executionArn: string };
    const adopt = adoptExecutions({ stateMachineArns: [arn], client });
    const adopted = await Run.start(adopt, { executionArn });
    expect(adopted.started.state?.status).toBe("working");
    await adopted.until("completed");
    expect(adopt.stop).toBeUndefined();

    const stranger = adoptExecutions({ stateMachineArns: [await machine("choice")], client });
    await expect(Run.start(stranger, { executionArn })).rejects.toMatchObject({
      verdict: { kind: "rejected" },
    });
    await expect(Run.start(adopt, { executionArn: `${executionArn}x` })).rejects.toThrow();
  });

  it("refuses a machine that does not exist", async () => {
    const adapter = adapterFor("arn:aws:states:us-east-1:123456789012:stateMachine:nowhere");
    const error = await Run.start(adapter, {}).catch((error: unknown) => error);
    expect(explainSfn(error)).toMatchObject({ kind: "rejected", code: "StateMachineDoesNotExist" });
  });

  it("refuses an input over 262,144 bytes before it is sent", async () => {
    const arn = await machine("long");
    await expect(
      Run.start(adapterFor(arn), { topic: "ä".repeat(140_000), seconds: 0 }),
    ).rejects.toMatchObject({
      verdict: { kind: "rejected", code: "States.DataLimitExceeded" },
    });
    const { executions } = await client.send(new ListExecutionsCommand({ stateMachineArn: arn }));
    expect(executions).toEqual([]);
  });

  it("discovers machines by prefix and by tag, with schema and names of their own", async () => {
    const prefix = `find-${newKey()}`;
    const tags = { taskferry: "yes" };
    await createMachine(client, fixture("long"), { name: `${prefix}-a-b`, tags });
    await createMachine(client, fixture("choice"), { name: `${prefix}-a_b` });
    await createMachine(client, fixture("choice"), { name: `other-${newKey()}` });

    const byPrefix = await discoverStateMachines({ client, prefix });
    expect(byPrefix).toHaveLength(2);
    expect(new Set(byPrefix.map(({ name }) => name.toLowerCase().replaceAll("-", "_"))).size).toBe(2);
    for (const { name } of byPrefix) expect(name).toMatch(/^[\w-]{1,128}$/);

    const byTag = await discoverStateMachines({ client, prefix, tag: { key: "taskferry", value: "yes" } });
    expect(byTag).toMatchObject([
      {
        type: "STANDARD",
        description: "A report that takes a while.",
        inputSchema: { required: ["topic", "seconds"] },
      },
    ]);
    expect(await discoverStateMachines({ client, tag: { key: "taskferry", value: "no" } })).toEqual([]);

    const run = await Run.start(byTag[0]!.adapter(), { topic: "found", seconds: 0 });
    expect((await run.until("completed")).output?.value).toMatchObject({ topic: "found" });
  });
});
