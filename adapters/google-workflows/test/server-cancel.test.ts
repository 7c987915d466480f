/** Cancels that race with everything else. 2025-11-25 is told at once, 2026-07-28 when Google says so. */
import { describe, expect, test } from "vitest";
import { CloudFault, type Fault } from "../emulator/src/cloud.js";
import { endStatus, lookUntil, serve, theExecution, WAYS } from "./serving.js";

const refuse = (code: string, times = 1): Fault => ({
  kind: "refuse",
  fault: new CloudFault(code, "words", 0.05),
  times,
});

const PASSING: readonly (readonly [what: string, Fault | undefined])[] = [
  ["nothing goes wrong", undefined],
  ["unavailable (14, 503)", refuse("UNAVAILABLE")],
  ["quota used up (8, 429)", refuse("RESOURCE_EXHAUSTED")],
  ["permission taken away for a while", refuse("PERMISSION_DENIED")],
  ["a connection that breaks before", { kind: "cut" }],
  ["a connection that breaks after", { kind: "loseAnswer" }],
];

describe.each(WAYS)("$generation over $transport", ({ transport, generation }) => {
  const atOnce = generation === "2025-11-25";

  async function started() {
    const { cloud, connect } = await serve(transport);
    const client = await connect(generation);
    const task = await client.start();
    await lookUntil(client, task, ({ message }) => /^Running/.test(message));
    return { cloud, client, task, execution: await theExecution(cloud) };
  }

  test.each(PASSING)("a cancel is owed until it is done: %s", async (_what, fault) => {
    const { cloud, client, task, execution } = await started();
    if (fault !== undefined) cloud.inject("cancelExecution", fault);
    await client.cancel(task);
    if (atOnce) expect((await client.look(task)).status).toBe("cancelled");
    await cloud.until(() => execution.state === "CANCELLED");
    expect(await endStatus(client, task)).toBe("cancelled");
    await theExecution(cloud);
  });

  test("a queued execution is cancelled", async () => {
    const { cloud, connect } = await serve(transport);
    cloud.slots = 0;
    const client = await connect(generation);
    const task = await client.start();
    await client.cancel(task);
    const execution = await theExecution(cloud);
    await cloud.until(() => execution.state === "CANCELLED");
    expect(await endStatus(client, task)).toBe("cancelled");
  });

  test("an execution that ends first keeps its end, for the client that waits for Google's word", async () => {
    const { cloud, client, task, execution } = await started();
    // The cancel is held back until the execution has ended, and is then refused: it has finished.
    cloud.inject("cancelExecution", refuse("UNAVAILABLE"));
    await client.cancel(task);
    await cloud.until(() => cloud.count("cancelExecution") === 1);
    cloud.succeed(execution.id, '"won"');
    expect(await endStatus(client, task)).toBe(atOnce ? "cancelled" : "completed");
    expect(execution.state).toBe("SUCCEEDED");
  });

  test("an execution that goes on after its cancel was taken, and ends well", async () => {
    const { cloud, client, task, execution } = await started();
    cloud.goesOnAfterCancel.add(execution.id);
    await client.cancel(task);
    await cloud.until(() => cloud.count("cancelExecution") >= 1);
    expect((await client.look(task)).status).toBe(atOnce ? "cancelled" : "working");
    cloud.succeed(execution.id, '"won"');
    expect(await endStatus(client, task)).toBe(atOnce ? "cancelled" : "completed");
  });

  test("a cancel after the end changes nothing, and nothing is asked of Google", async () => {
    const { cloud, client, task, execution } = await started();
    cloud.succeed(execution.id, '"done"');
    await client.end(task);
    await client.cancel(task).catch(() => {});
    expect((await client.look(task)).status).toBe("completed");
    expect(cloud.count("cancelExecution")).toBe(0);
  });

  test("an execution that vanishes under its cancel", async () => {
    const { cloud, client, task } = await started();
    cloud.executions.clear();
    await client.cancel(task);
    // Whether it was cancelled before it vanished, nobody can tell any more.
    expect(await endStatus(client, task)).toBe(atOnce ? "cancelled" : "failed");
  });

  test("a cancel while nobody knows whether the start got through stops what it started", async () => {
    const { cloud, connect } = await serve(transport, { adapter: { find: { appearsWithinMs: 60_000 } } });
    cloud.listsNewExecutions = false;
    cloud.inject("createExecution", { kind: "loseAnswer" });
    const client = await connect(generation);
    const task = await client.start();
    await cloud.until(() => cloud.count("listExecutions") > 0);
    await client.cancel(task);
    const execution = await theExecution(cloud);
    cloud.update(execution.id, { listed: true });
    await cloud.until(() => execution.state === "CANCELLED");
    expect(await endStatus(client, task)).toBe("cancelled");
    await theExecution(cloud);
  });
});
