import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { CloudFault } from "../emulator/src/cloud.js";
import { type Harness, harness, LOCATION, newKey, readRequest, signal, TRANSPORTS } from "./harness.js";

describe.each(TRANSPORTS)("stopping over %s", (transport) => {
  let h: Harness;
  beforeEach(async () => {
    h = await harness(transport);
    h.cloud.deploy({ id: "orders", location: LOCATION });
  });
  afterEach(() => h.close());

  const start = async () => {
    const adapter = h.adapter();
    const { ref } = await adapter.start({ key: newKey(), input: {}, retry: false, signal: signal() });
    const stop = () => adapter.stop?.(ref, { signal: signal(), stopsSent: 0, requestedAgoMs: 0 });
    return { adapter, ref, stop, id: String(ref).split("/").at(-1) ?? "" };
  };

  test("cancels a running execution, and again without harm", async () => {
    const { adapter, ref, stop } = await start();
    await stop();
    const state = await adapter.read(ref, readRequest());
    expect(state).toMatchObject({ native: "CANCELLED", status: "cancelled" });
    expect(state.message).toContain("may still be running");
    await expect(stop()).resolves.toBeUndefined();
  });

  test("cancels a queued execution", async () => {
    h.cloud.slots = 0;
    const { adapter, ref, stop } = await start();
    await stop();
    expect((await adapter.read(ref, readRequest())).status).toBe("cancelled");
  });

  test.each([
    ["FAILED_PRECONDITION", undefined],
    ["INVALID_ARGUMENT", new CloudFault("INVALID_ARGUMENT", "not active")],
  ])("takes %s for an execution that has just finished, whose result stands", async (_code, fault) => {
    const { adapter, ref, stop, id } = await start();
    h.cloud.succeed(id, '"done"');
    if (fault !== undefined) h.cloud.inject("cancelExecution", { kind: "refuse", fault });
    await expect(stop()).resolves.toBeUndefined();
    expect(await adapter.read(ref, readRequest())).toMatchObject({
      status: "completed",
      output: { value: "done" },
    });
  });

  test("does not take a refusal for a stop while the execution runs", async () => {
    const { adapter, stop, ref } = await start();
    h.cloud.inject("cancelExecution", { kind: "refuse", fault: new CloudFault("INVALID_ARGUMENT", "no") });
    await expect(stop()).rejects.toThrow();
    expect((await adapter.read(ref, readRequest())).status).toBe("working");
  });

  test("an answer that is lost is repeated", async () => {
    const { adapter, stop, ref } = await start();
    h.cloud.inject("cancelExecution", { kind: "loseAnswer" });
    await expect(stop()).rejects.toThrow();
    await expect(stop()).resolves.toBeUndefined();
    expect((await adapter.read(ref, readRequest())).status).toBe("cancelled");
  });
});
