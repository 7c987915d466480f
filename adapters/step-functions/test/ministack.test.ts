/**
 * Against ministack, for what moto cannot do: activities, Express, JSONata. Its history has neither the parameters of
 * tasks nor `previousEventId`.
 */
import { CreateActivityCommand, GetExecutionHistoryCommand } from "@aws-sdk/client-sfn";
import { afterAll, describe, expect, it } from "vitest";
import { openLane } from "../emulator/src/lane.js";
import { explainSfn, stepFunctions } from "../src/index.js";
import { createMachine, fixture, newKey, Run } from "./support.js";

const lane = await openLane("ministack");

describe.skipIf(lane === undefined)("ministack", { timeout: 60_000 }, () => {
  const client = lane?.client() as NonNullable<ReturnType<NonNullable<typeof lane>["client"]>>;
  afterAll(async () => {
    client?.destroy();
    await lane?.close();
  });

  async function signing() {
    const { activityArn = "" } = await client.send(new CreateActivityCommand({ name: `sign-${newKey()}` }));
    const stateMachineArn = await createMachine(
      client,
      fixture("activity", { SignActivityArn: activityArn }),
    );
    return {
      stateMachineArn,
      make: () => stepFunctions({ stateMachineArn, client, activity: { activityArn } }),
    };
  }

  it("runs an Express machine within its start", async () => {
    const stateMachineArn = await createMachine(client, fixture("express"), { type: "EXPRESS" });
    const adapter = stepFunctions({ stateMachineArn, client, type: "EXPRESS" });
    expect(adapter.startsOnce).toBeUndefined();
    expect(adapter.stop).toBeUndefined();
    const fine = await Run.start(adapter, { amount: 7 });
    expect(fine.started.state).toMatchObject({
      status: "completed",
      output: { value: { ok: true, amount: 7 } },
    });
    const bad = await Run.start(adapter, { amount: 700 });
    expect(bad.started.state).toMatchObject({
      native: "FAILED",
      status: "completed",
      failure: { code: "Order.TooMuch", message: "The amount is over the limit of 100" },
    });
    const error = await bad.read().catch((error: unknown) => error);
    expect(explainSfn(error).kind).toBe("gone");
  });

  it("refuses an Express machine that was taken for a Standard one", async () => {
    const stateMachineArn = await createMachine(client, fixture("express"), { type: "EXPRESS" });
    await expect(Run.start(stepFunctions({ stateMachineArn, client }), { amount: 7 })).rejects.toMatchObject({
      verdict: { kind: "rejected", code: "StateMachineTypeNotSupported" },
    });
  });

  it("runs JSONata", async () => {
    const adapter = stepFunctions({
      stateMachineArn: await createMachine(client, fixture("jsonata")),
      client,
    });
    const run = await Run.start(adapter, { items: [{ price: 3 }, { price: 4 }] });
    expect((await run.until("completed")).output?.value).toEqual({ total: 7, count: 2 });
  });

  it("asks what an activity asks, and keeps its token in the ref", async () => {
    const { make } = await signing();
    const adapter = make();
    const run = await Run.start(adapter, { contract: "C-1" });
    const { questions = [] } = await run.until("input_required");
    expect(questions).toEqual([
      {
        key: expect.stringMatching(/^activity-[0-9a-f]{32}$/),
        message: "Sign contract C-1?",
        schema: expect.objectContaining({ required: ["name"] }),
      },
    ]);
    await adapter.close?.();

    // The activity gives its task only once: a new process has nothing but the ref.
    const after = run.with(make());
    expect((await after.until("input_required")).questions).toEqual(questions);
    await after.answer(questions[0]!.key, { name: "Ada" });
    expect((await after.until("completed")).output?.value).toEqual({
      contract: "C-1",
      signature: { name: "Ada" },
    });
  });

  it("gives each execution its own activity task, whichever was asked for first", async () => {
    const { make } = await signing();
    const adapter = make();
    const first = await Run.start(adapter, { contract: "first" });
    const second = await Run.start(adapter, { contract: "second" });
    // The second is read first, and its poll is given the first one's task.
    const [b] = (await second.until("input_required")).questions ?? [];
    const [a] = (await first.until("input_required")).questions ?? [];
    expect([a?.message, b?.message]).toEqual(["Sign contract first?", "Sign contract second?"]);
    await first.answer(a!.key, { name: "A" });
    await second.answer(b!.key, { name: "B" });
    expect((await first.until("completed")).output?.value).toMatchObject({ signature: { name: "A" } });
    expect((await second.until("completed")).output?.value).toMatchObject({ signature: { name: "B" } });
  });

  it("forgets an activity task once it was answered", async () => {
    const { make } = await signing();
    const run = await Run.start(make(), { contract: "C-2" });
    const [question] = (await run.until("input_required")).questions ?? [];
    await run.answer(question!.key);
    // Declined: the machine does not catch it.
    const { failure } = await run.until("completed");
    expect(failure?.code).toBe("Declined");
  });

  it("resolves a start that ministack refuses although it is ours and still runs", async () => {
    const stateMachineArn = await createMachine(client, fixture("long"));
    const key = newKey();
    const input = { topic: "a", seconds: 2 };
    const first = await Run.start(stepFunctions({ stateMachineArn, client }), input, key);
    const again = await Run.start(stepFunctions({ stateMachineArn, client }), input, key, true);
    expect(again.ref).toEqual(first.ref);
    expect(again.started.state?.status).toBe("working");
    await again.until("completed");
    const { executionArn } = first.ref as { executionArn: string };
    const { events = [] } = await client.send(new GetExecutionHistoryCommand({ executionArn }));
    expect(events.filter(({ type }) => type === "ExecutionStarted")).toHaveLength(1);
  });

  it("stops a run for good", async () => {
    const run = await Run.start(
      stepFunctions({ stateMachineArn: await createMachine(client, fixture("long")), client }),
      {
        topic: "a",
        seconds: 2,
      },
    );
    await run.until("working", ({ message }) => expect(message).toBe("In state Analyse"));
    await run.stop();
    await run.stop();
    await run.until("cancelled");
  });

  it("takes a stop that comes too late", async () => {
    const run = await Run.start(
      stepFunctions({ stateMachineArn: await createMachine(client, fixture("long")), client }),
      {
        topic: "a",
        seconds: 0,
      },
    );
    await run.until("completed");
    await run.stop();
    expect((await run.read()).status).toBe("completed");
  });
});
