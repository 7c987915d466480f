/** Against the protocol server: emulators lose no responses. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ACCOUNT, acceptThenRefuse, cut, ProtocolServer, refuse } from "../emulator/src/protocol-server.js";
import { explainSfn, type StepFunctionsOptions, stepFunctions } from "../src/index.js";
import { newKey, Run } from "./support.js";

let server: ProtocolServer;
beforeEach(async () => {
  server = await ProtocolServer.open();
});
afterEach(() => server.close());

function adapterFor(stateMachineArn: string, options: Partial<StepFunctionsOptions> = {}) {
  return stepFunctions({ stateMachineArn, client: server.client(), ...options });
}
const verdictOf = (start: Promise<unknown>) => start.then(() => "started", explainSfn);

describe("a Standard start", () => {
  it("names the execution after the key and sends its input with sorted keys", async () => {
    const run = await Run.start(
      adapterFor(server.createMachine("order")),
      { b: 1, a: { d: 2, c: [3] } },
      "k1",
    );
    expect(run.ref).toEqual({ executionArn: `${ACCOUNT}:execution:order:taskferry-k1` });
    expect(server.execution()).toMatchObject({ name: "taskferry-k1", input: '{"a":{"c":[3],"d":2},"b":1}' });
  });

  it.each([
    ["an error", acceptThenRefuse("InternalServerError")],
    ["a cut connection", cut("after")],
  ])("starts one execution when the response is lost to %s", async (_how, behaviour) => {
    const adapter = adapterFor(server.createMachine("order"));
    server.next("StartExecution", behaviour);
    const run = await Run.start(adapter, { id: 1 });
    expect(server.executions.size).toBe(1);
    expect(server.countOf("StartExecution")).toBe(2);
    expect((await run.read()).status).toBe("working");
  });

  it("is made good by a later start when every response was lost, even if the run has ended", async () => {
    const arn = server.createMachine("order");
    const key = newKey();
    server.next("StartExecution", ...[1, 2, 3].map(() => acceptThenRefuse("InternalServerError")));
    const lost = await verdictOf(Run.start(adapterFor(arn), { id: 1 }, key));
    expect(lost).toMatchObject({ kind: "ambiguous" });
    server.execution().succeed({ done: true });

    const run = await Run.start(adapterFor(arn), { id: 1 }, key, true);
    expect(run.started.state).toMatchObject({ status: "completed", output: { value: { done: true } } });
    expect(server.executions.size).toBe(1);
    expect((await run.find())?.ref).toEqual(run.ref);
  });

  it("is ambiguous when a lost response is followed by a refusal that alone would mean that nothing happened", async () => {
    server.next(
      "StartExecution",
      acceptThenRefuse("InternalServerError"),
      ...[1, 2].map(() => refuse("ThrottlingException")),
    );
    const adapter = adapterFor(server.createMachine("order"));
    expect(await verdictOf(Run.start(adapter, {}))).toMatchObject({
      kind: "ambiguous",
      code: "ThrottlingException",
    });
    expect(server.executions.size).toBe(1);
  });

  it("surely started nothing when it was throttled or never connected", async () => {
    const adapter = adapterFor(server.createMachine("order"));
    server.next("StartExecution", ...[1, 2, 3].map(() => refuse("ThrottlingException")));
    const throttled = await Run.start(adapter, {}).catch((error: unknown) => adapter.explain?.(error));
    expect(throttled).toMatchObject({ kind: "retry", retryAfterMs: expect.any(Number) });

    const arn = server.createMachine("order");
    const closed = await ProtocolServer.open();
    const client = closed.client(1);
    await closed.close();
    expect(await verdictOf(Run.start(stepFunctions({ stateMachineArn: arn, client }), {}))).toMatchObject({
      kind: "retry",
    });
    expect(server.executions.size).toBe(0);
  });

  it.each([["3"], ["PROD"]])("resolves a taken name under version or alias :%s", async (qualifier) => {
    const stateMachineArn = `${server.createMachine("order")}:${qualifier}`;
    const key = newKey();
    const first = await Run.start(adapterFor(stateMachineArn), {}, key);
    expect(server.calls.find(({ operation }) => operation === "StartExecution")?.input).toMatchObject({
      stateMachineArn,
    });
    server.execution().fail("Broken", "It broke");
    const again = await Run.start(adapterFor(stateMachineArn), {}, key, true);
    expect(again.ref).toEqual(first.ref);
    expect(again.started.state).toMatchObject({ status: "completed", failure: { code: "Broken" } });
  });

  it("binds a taken name even when it cannot be described at once", async () => {
    const adapter = adapterFor(server.createMachine("order"));
    const first = await Run.start(adapter, {}, "k2");
    server.execution().succeed({});
    server.next("DescribeExecution", refuse("ExecutionDoesNotExist"));
    const again = await Run.start(adapter, {}, "k2", true);
    expect(again.started).toMatchObject({ ref: first.ref });
    expect(again.started.state).toBeUndefined();
  });

  it("does not follow an execution that turns out to be Express, and says so", async () => {
    const adapter = adapterFor(server.createMachine("quick", { type: "EXPRESS" }));
    // The check before the start is not allowed here, so the start itself finds out.
    server.next("DescribeStateMachine", refuse("AccessDeniedException"));
    const { started } = await Run.start(adapter, {});
    expect(started.state).toMatchObject({
      status: "unknown",
      failure: { message: expect.stringContaining("EXPRESS") },
    });
  });

  it("checks the machine's type once", async () => {
    const adapter = adapterFor(server.createMachine("order"));
    await Run.start(adapter, {});
    await Run.start(adapter, {});
    expect(server.countOf("DescribeStateMachine")).toBe(1);
  });

  it.each([
    ["StateMachineDeleting", "rejected"],
    ["KmsInvalidStateException", "rejected"],
    ["AccessDeniedException", "rejected"],
    ["ExecutionLimitExceeded", "retry"],
    ["KmsThrottlingException", "retry"],
    ["ExpiredTokenException", "retry"],
  ])("tells that %s is %s, in words of its own", async (name, kind) => {
    server.next("StartExecution", ...[1, 2, 3].map(() => refuse(name)));
    const verdict = await verdictOf(Run.start(adapterFor(server.createMachine("order")), {}));
    expect(verdict).toMatchObject({ kind, code: name });
    expect((verdict as { message: string }).message).not.toContain("details");
  });
});

describe("an Express start", () => {
  it("is the whole run", async () => {
    const run = (input: unknown) => ({ output: { doubled: (input as { n: number }).n * 2 } });
    const adapter = adapterFor(server.createMachine("quick", { type: "EXPRESS", run }), { type: "EXPRESS" });
    const { started } = await Run.start(adapter, { n: 21 });
    expect(started.state).toMatchObject({
      native: "SUCCEEDED",
      status: "completed",
      output: { value: { doubled: 42 } },
    });
    expect(started.url).toContain("express-executions");
    expect(adapter).toMatchObject({ startTimeoutMs: 310_000 });
    expect([adapter.startsOnce, adapter.stop, adapter.find, adapter.answer]).toEqual(
      Array(4).fill(undefined),
    );
  });

  it.each([
    ["FAILED", { error: "Bad", cause: "Broken" }, "Bad"],
    ["TIMED_OUT", { status: "TIMED_OUT" }, "States.Timeout"],
  ])("tells %s as a failure", async (native, end, code) => {
    const adapter = adapterFor(server.createMachine("quick", { type: "EXPRESS", run: () => end }), {
      type: "EXPRESS",
    });
    const { started } = await Run.start(adapter, {});
    expect(started.state).toMatchObject({ native, status: "completed", failure: { code } });
  });

  it.each([
    ["an error after it began", acceptThenRefuse("InternalServerError")],
    ["a cut connection", cut("after")],
  ])("is never sent a second time by the SDK: %s is ambiguous", async (_how, behaviour) => {
    const adapter = adapterFor(server.createMachine("quick", { type: "EXPRESS" }), { type: "EXPRESS" });
    server.next("StartSyncExecution", behaviour);
    expect(await verdictOf(Run.start(adapter, {}))).toMatchObject({ kind: "ambiguous" });
    expect(server.countOf("StartSyncExecution")).toBe(1);
  });

  it("refuses a Standard machine", async () => {
    const adapter = adapterFor(server.createMachine("order"), { type: "EXPRESS" });
    expect(await verdictOf(Run.start(adapter, {}))).toMatchObject({
      kind: "rejected",
      code: "StateMachineTypeNotSupported",
    });
  });
});

it.each([
  ["no ARN", { stateMachineArn: "order" }],
  ["an execution's ARN", { stateMachineArn: `${ACCOUNT}:execution:order:1` }],
  [
    "a prefix that names cannot have",
    { stateMachineArn: `${ACCOUNT}:stateMachine:order`, namePrefix: "a/b" },
  ],
])("refuses a configuration with %s", (_what, options) => {
  expect(() => stepFunctions(options)).toThrow(expect.objectContaining({ code: "configuration" }));
});
