/** Through a whole Taskferry server, against moto, which runs real state machines. */
import { ListExecutionsCommand } from "@aws-sdk/client-sfn";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { createQueue } from "../emulator/src/client.js";
import { openLane } from "../emulator/src/lane.js";
import { stepFunctions } from "../src/index.js";
import { home, serveHere, serveProcess, textOf } from "./serving.js";
import { createMachine, fixture } from "./support.js";

const lane = await openLane("moto");

describe.skipIf(lane === undefined)("a server on moto", { timeout: 60_000 }, () => {
  const client = lane?.client() as NonNullable<ReturnType<NonNullable<typeof lane>["client"]>>;
  let queueUrl = "";

  beforeAll(async () => {
    queueUrl = await createQueue(lane?.endpoint ?? "", "server-approvals");
  });
  afterAll(async () => {
    client?.destroy();
    await lane?.close();
  });

  const machine = (name: string) => createMachine(client, fixture(name, { ApprovalQueueUrl: queueUrl }));
  const serve = (stateMachineArn: string) => serveHere({ run: stepFunctions({ stateMachineArn, client }) });
  async function executions(stateMachineArn: string): Promise<(string | undefined)[]> {
    const { executions = [] } = await client.send(new ListExecutionsCommand({ stateMachineArn }));
    return executions.map(({ status }) => status);
  }

  it("tells progress by state, and the result", async () => {
    const tasks = await serve(await machine("long"));
    const taskId = await tasks.start("run", { topic: "ferries", seconds: 1 });
    await tasks.until(taskId, "working", ({ statusMessage }) =>
      expect(statusMessage).toBe("In state Analyse"),
    );
    const { status, result } = await tasks.ended(taskId);
    expect(status).toBe("completed");
    expect(result?.structuredContent).toEqual({ topic: "ferries", sources: ["alpha", "beta"], pages: 12 });
  });

  it("tells a failed and a timed out execution as results that say why", async () => {
    const failing = await serve(await machine("choice"));
    const failed = await failing.ended(await failing.start("run", { amount: 500 }));
    expect(failed).toMatchObject({ status: "completed", result: { isError: true } });
    expect(textOf(failed)).toContain('Order.TooMuch: State "Too much": The amount is over the limit of 100');

    const slow = await serve(await machine("timeout"));
    const timedOut = await slow.ended(await slow.start("run", {}));
    expect(timedOut).toMatchObject({ status: "completed", result: { isError: true } });
    expect(textOf(timedOut)).toContain("States.Timeout");
  });

  it("cancels in mid-Wait, and it stays cancelled", async () => {
    const arn = await machine("long");
    const tasks = await serve(arn);
    const taskId = await tasks.start("run", { topic: "ferries", seconds: 2 });
    await tasks.until(taskId, "working", ({ statusMessage }) =>
      expect(statusMessage).toBe("In state Analyse"),
    );
    await tasks.cancel(taskId);
    expect((await tasks.ended(taskId)).status).toBe("cancelled");
    // Longer than the Wait would have gone on.
    for (const until = Date.now() + 3_000; Date.now() < until; ) {
      expect((await tasks.get(taskId)).status).toBe("cancelled");
      expect(await executions(arn)).toEqual(["ABORTED"]);
    }
  });

  it("asks for a task token's answer and delivers it", async () => {
    const tasks = await serve(await machine("approval"));
    const taskId = await tasks.start("run", { service: "billing" });
    const { inputRequests = {} } = await tasks.until(taskId, "input_required");
    const [[key = "", question] = []] = Object.entries(inputRequests);
    expect(question?.params.message).toBe("Deploy billing?");
    await tasks.answer(taskId, key, { environment: "staging", note: "go" });
    const { result } = await tasks.ended(taskId);
    expect(result?.structuredContent).toEqual({ service: "billing", environment: "staging", deployed: true });
  });

  it("lets the machine catch a refusal", async () => {
    const tasks = await serve(await machine("approval"));
    const taskId = await tasks.start("run", { service: "billing" });
    const { inputRequests = {} } = await tasks.until(taskId, "input_required");
    await tasks.answer(taskId, Object.keys(inputRequests)[0] ?? "", undefined);
    expect((await tasks.ended(taskId)).result?.structuredContent).toMatchObject({ deployed: false });
  });

  it("runs 25 tasks at once, each with its own result", async () => {
    const arn = await machine("long");
    const tasks = await serve(arn);
    const topics = Array.from({ length: 25 }, (_, index) => `topic ${index}`);
    const ids = await Promise.all(topics.map((topic) => tasks.start("run", { topic, seconds: 1 })));
    const ended = await Promise.all(ids.map((taskId) => tasks.ended(taskId)));
    expect(ended.map(({ result }) => result?.structuredContent?.topic)).toEqual(topics);
    expect(await executions(arn)).toEqual(topics.map(() => "SUCCEEDED"));
  });

  it("starts nothing new for a call that is repeated with its key, while it runs and when it has ended", async () => {
    const arn = await machine("long");
    const tasks = await serve(arn);
    const call = () => tasks.start("run", { topic: "once", seconds: 1 }, "the same key");
    const ids = await Promise.all([call(), call(), call()]);
    await tasks.ended(ids[0]);
    expect(new Set([...ids, await call()]).size).toBe(1);
    expect(await executions(arn)).toEqual(["SUCCEEDED"]);
  });

  it("goes on after its server was killed in mid-run, answers included", async () => {
    const arn = await machine("approval");
    const [folder, options] = [await home(), { stateMachineArn: arn, endpoint: lane?.endpoint ?? "" }];
    const first = await serveProcess(folder, options);
    const ids = await Promise.all(
      ["billing", "search"].map((service) => first.client.start("run", { service }, service)),
    );
    await first.client.until(ids[0] ?? "", "input_required");
    await first.kill();

    const { client: tasks } = await serveProcess(folder, options);
    for (const taskId of ids) {
      const { inputRequests = {} } = await tasks.until(taskId, "input_required");
      await tasks.answer(taskId, Object.keys(inputRequests)[0] ?? "", { environment: "production" });
    }
    const ended = await Promise.all(ids.map((taskId) => tasks.ended(taskId)));
    expect(ended.map(({ result }) => result?.structuredContent?.service)).toEqual(["billing", "search"]);
    expect(await tasks.start("run", { service: "billing" }, "billing")).toBe(ids[0]);
    expect(await executions(arn)).toEqual(["SUCCEEDED", "SUCCEEDED"]);
  });

  it("starts once although its server was killed while it started", async () => {
    const arn = await machine("long");
    const [folder, options] = [await home(), { stateMachineArn: arn, endpoint: lane?.endpoint ?? "" }];
    const first = await serveProcess(folder, options);
    // The server dies somewhere between the row and the engine's answer: wherever that is, the call is repeated.
    void first.client.start("run", { topic: "once", seconds: 1 }, "k").catch(() => {});
    await vi.waitFor(async () => expect(await executions(arn)).not.toEqual([]), {
      timeout: 20_000,
      interval: 1,
    });
    await first.kill();
    const { client: tasks } = await serveProcess(folder, options);
    const taskId = await tasks.start("run", { topic: "once", seconds: 1 }, "k");
    expect((await tasks.ended(taskId)).result?.structuredContent).toMatchObject({ topic: "once" });
    expect(await executions(arn)).toEqual(["SUCCEEDED"]);
  });
});
