/** Against the protocol server: what DescribeExecution and the history tell, when emulators never do. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { amend, ProtocolServer, refuse } from "../emulator/src/protocol-server.js";
import { explainSfn, type StepFunctionsOptions, stepFunctions } from "../src/index.js";
import { Run } from "./support.js";

let server: ProtocolServer;
beforeEach(async () => {
  server = await ProtocolServer.open();
});
afterEach(() => server.close());

async function started(options: Partial<StepFunctionsOptions> = {}) {
  const stateMachineArn = server.createMachine(options.stateMachineArn ?? "order");
  const adapter = stepFunctions({ client: server.client(), ...options, stateMachineArn });
  const run = await Run.start(adapter, { id: 1 });
  return { adapter, run, execution: server.execution((run.ref as { executionArn: string }).executionArn) };
}

describe("eventual consistency", () => {
  it("lets an execution that cannot be seen yet be gone for now, then RUNNING", async () => {
    const { run, adapter } = await started();
    server.next("DescribeExecution", refuse("ExecutionDoesNotExist"));
    const error = await run.read().catch((error: unknown) => error);
    expect(adapter.explain?.(error)).toMatchObject({ kind: "gone", code: "ExecutionDoesNotExist" });
    expect(adapter.appearsWithinMs).toBe(60_000);
    expect((await run.read()).status).toBe("working");
  });

  it("waits for the output of SUCCEEDED", async () => {
    const { run, execution } = await started();
    execution.succeed({ total: 3 });
    server.next(
      "DescribeExecution",
      amend(({ output, outputDetails, ...rest }) => rest),
    );
    expect(await run.read()).toMatchObject({ native: "SUCCEEDED", status: "working" });
    expect(await run.read()).toMatchObject({ status: "completed", output: { value: { total: 3 } } });
  });

  it("completes without an output that never comes", async () => {
    const { run, execution } = await started();
    execution.succeed(null);
    const old = Date.now() / 1000 - 120;
    server.next(
      "DescribeExecution",
      amend(({ output, ...rest }) => ({ ...rest, stopDate: old })),
    );
    expect(await run.read()).toMatchObject({ status: "completed", output: {} });
  });
});

describe("states", () => {
  it("takes PENDING_REDRIVE for work", async () => {
    const { run, execution } = await started();
    execution.status = "PENDING_REDRIVE";
    expect(await run.read()).toMatchObject({ native: "PENDING_REDRIVE", status: "working" });
  });

  it("keeps the last status for a word that it does not know", async () => {
    const { run, execution } = await started();
    execution.status = "HIBERNATING";
    expect(await run.read()).toMatchObject({ native: "HIBERNATING", status: "unchanged" });
  });

  it("is gone when the execution was deleted", async () => {
    const { run } = await started();
    await run.read();
    server.executions.clear();
    expect(await run.read().catch(explainSfn)).toMatchObject({ kind: "gone" });
  });

  it("tells who stopped an execution and why", async () => {
    const { run, execution } = await started();
    execution.cause = "Superseded by release 7";
    execution.abort();
    expect(await run.read()).toMatchObject({
      status: "cancelled",
      message: "Stopped: Superseded by release 7",
    });
  });

  it.each([
    ["KmsAccessDeniedException", "rejected"],
    ["KmsThrottlingException", "retry"],
    ["ExpiredTokenException", "retry"],
    ["ThrottlingException", "retry"],
    ["InternalServerError", "ambiguous"],
  ])("throws %s, which means %s, and reads on afterwards", async (name, kind) => {
    const { run, execution, adapter } = await started();
    server.next(
      "DescribeExecution",
      ...[1, 2, 3].map(() => refuse(name, name.startsWith("Internal") ? 500 : 400)),
    );
    const error = await run.read().catch((error: unknown) => error);
    expect(adapter.explain?.(error)).toMatchObject({ kind });
    while (server.countOf("DescribeExecution") < 3) await run.read().catch(() => undefined);
    execution.succeed({});
    expect((await run.read()).status).toBe("completed");
  });
});

describe("redrive", () => {
  it("tells the end of the attempt that the task is about", async () => {
    const { run, execution } = await started();
    expect((await run.read()).attempt).toBe(0);
    execution.main
      .enter("Charge")
      .add("TaskScheduled")
      .add("TaskFailed", { taskFailedEventDetails: { error: "Card" } });
    execution.fail("Card.Declined", "No funds").redrive();
    execution.main.enter("Charge").exit();
    const state = await run.read({ attempt: 0 });
    expect(state).toMatchObject({
      native: "FAILED",
      status: "completed",
      attempt: 0,
      failure: { code: "Card.Declined", message: 'State "Charge": No funds' },
    });
    execution.succeed({});
    expect(await run.read({ attempt: 0 })).toEqual(state);
  });

  it("follows a redriven execution that the task was about from the beginning", async () => {
    const { run, execution } = await started();
    execution.fail("Broken", "It broke").redrive().succeed({ fixed: true });
    expect(await run.read({ attempt: 1 })).toMatchObject({ attempt: 1, output: { value: { fixed: true } } });
  });

  it("says that it does not know when the history is off", async () => {
    const { run, execution } = await started({ historyEvents: 0 });
    execution.fail("Broken", "It broke").redrive();
    expect(await run.read({ attempt: 0 })).toMatchObject({
      status: "unknown",
      failure: { code: "Redriven" },
    });
  });
});

describe("failures", () => {
  it("names the state inside of a Parallel that failed, not the one that was cut off", async () => {
    const { run, execution } = await started();
    const [left, right] = execution.main.parallel("Both", 2);
    left!.enter("Bake").add("TaskScheduled").add("TaskStarted");
    right!
      .enter("Brew")
      .add("TaskScheduled")
      .add("TaskFailed", { taskFailedEventDetails: { error: "Spilled" } });
    left!.add("TaskStateAborted");
    execution.main.last = right!.last;
    execution.main.add("ParallelStateFailed");
    execution.fail("Spilled", "");
    const { failure } = await run.read();
    expect(failure).toMatchObject({ code: "Spilled", message: 'State "Brew": No cause was given.' });
  });

  it("names the state in which an execution timed out", async () => {
    const { run, execution } = await started();
    execution.main.enter("Sleep", "Wait");
    execution.timeOut();
    const { failure } = await run.read();
    expect(failure).toMatchObject({ code: "States.Timeout", value: { state: "Sleep", status: "TIMED_OUT" } });
  });

  it.each([
    ["a Lambda error", { errorMessage: "Out of paper", stackTrace: ["…"] }, "Out of paper"],
    [
      "a nested execution",
      { Cause: JSON.stringify({ errorMessage: "Out of ink" }), Status: "FAILED" },
      "Out of ink",
    ],
    ["a container", { StoppedReason: "Essential container exited" }, "Essential container exited"],
    ["text", "plain words", "plain words"],
    ["something else", { code: 7 }, '{"code":7}'],
  ])("reads the cause of %s", async (_what, cause, message) => {
    const { run, execution } = await started();
    execution.fail("E", typeof cause === "string" ? cause : JSON.stringify(cause));
    expect((await run.read()).failure).toMatchObject({ message, value: { cause } });
  });

  it("tells the failure without its state when the history may not be read", async () => {
    const { run, execution } = await started();
    execution.main.enter("Charge");
    execution.fail("Broken", "It broke");
    server.next("GetExecutionHistory", refuse("AccessDeniedException"));
    expect((await run.read()).failure).toMatchObject({ code: "Broken", message: "It broke" });
  });
});

describe("output", () => {
  it("is kept whole, with a short text and a link where it is long", async () => {
    const { run, execution } = await started({ textLimit: 100 });
    const value = { rows: Array.from({ length: 100 }, (_, index) => index) };
    execution.succeed(value);
    const { output } = await run.read();
    expect(output?.value).toEqual(value);
    expect(output?.text).toMatch(/^\{\n[\s\S]{95,110}… \(\d+ more characters/);
    expect(output?.links).toMatchObject([{ uri: expect.stringContaining("console.aws.amazon.com") }]);
  });

  it.each([[null], ["text"], [7], [[1, 2]], [{ a: { b: null } }]])("may be %j", async (value) => {
    const { run, execution } = await started();
    execution.succeed(value);
    expect((await run.read()).output?.value).toEqual(value);
  });
});

describe("the current states", () => {
  it("are those of the branches that go on", async () => {
    const { run, execution } = await started();
    const [left, right] = execution.main.parallel("Both", 2);
    left!.enter("Bake", "Pass").exit("Pass").enter("Cool", "Wait");
    right!.enter("Brew").exit();
    expect((await run.read()).message).toBe("In state Cool");
  });

  it("leave out branches that a caught failure cut off", async () => {
    const { run, execution } = await started();
    const [left, right] = execution.main.parallel("Both", 2);
    left!.enter("Bake").add("TaskScheduled").add("TaskStarted");
    right!.enter("Stumble", "Fail");
    execution.main.last = right!.last;
    execution.main.add("ParallelStateFailed").exit("Parallel").enter("Clean up").add("TaskScheduled");
    expect((await run.read()).message).toBe("In state Clean up");
  });

  it("count Map iterations, and those that are done", async () => {
    const { run, execution } = await started();
    const [first, ...others] = execution.main.map("Resize all", 7);
    for (const branch of others) branch.enter("Resize");
    first!.enter("Resize").exit().add("MapIterationSucceeded");
    expect(await run.read()).toMatchObject({
      message: "In state Resize ×6".replace("state", "states"),
      progress: { done: 1, total: 7 },
    });
  });

  it("are few enough for one line", async () => {
    const { run, execution } = await started();
    for (const [index, branch] of execution.main.parallel("Many", 8).entries()) branch.enter(`S${index}`);
    expect((await run.read()).message).toBe("In states S0, S1, S2, S3, S4 and 3 more");
  });

  it("are found over several pages, and within the limit only", async () => {
    server.pageSize = 10;
    const { run, execution } = await started({ historyEvents: 30 });
    execution.main.enter("Long", "Wait");
    for (let step = 0; step < 200; step++) execution.main.add("TaskScheduled");
    expect((await run.read()).message).toBeUndefined();
    expect(server.countOf("GetExecutionHistory")).toBe(3);
    execution.main.exit().enter("Next");
    expect((await run.read()).message).toBe("In state Next");
  });

  it("are not told where the history is off or forbidden, and the run goes on", async () => {
    const { run } = await started();
    server.next("GetExecutionHistory", refuse("AccessDeniedException"));
    expect(await run.read()).not.toHaveProperty("message");
    const off = await started({ historyEvents: 0, stateMachineArn: "other" });
    const before = server.countOf("GetExecutionHistory");
    expect((await off.run.read()).status).toBe("working");
    expect(server.countOf("GetExecutionHistory")).toBe(before);
  });

  it("throws when the history is throttled, so that no open question is taken for closed", async () => {
    const { run } = await started();
    server.next("GetExecutionHistory", ...[1, 2, 3].map(() => refuse("ThrottlingException")));
    expect(await run.read().catch(explainSfn)).toMatchObject({ kind: "retry" });
  });
});

it("stops with neither error nor cause, which would need KMS rights", async () => {
  const { run, execution } = await started();
  await run.stop();
  await run.stop();
  expect(execution.status).toBe("ABORTED");
  const stops = server.calls.filter(({ operation }) => operation === "StopExecution");
  expect(stops.map(({ input }) => Object.keys(input))).toEqual([["executionArn"], ["executionArn"]]);
});

it("owes a stop that did not get through", async () => {
  const { run } = await started();
  server.next("StopExecution", ...[1, 2, 3].map(() => refuse("ThrottlingException")));
  expect(await run.stop().catch(explainSfn)).toMatchObject({ kind: "retry" });
  expect((await run.read()).status).toBe("working");
  server.next("StopExecution", refuse("ValidationException"));
  expect(await run.stop().catch(explainSfn)).toMatchObject({ kind: "rejected" });
});
