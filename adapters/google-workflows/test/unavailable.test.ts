import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { describeExecution } from "../src/execution.js";
import { type Harness, harness, LOCATION, newKey, readRequest, signal, TRANSPORTS } from "./harness.js";

describe.each(TRANSPORTS)("an execution whose data is unavailable, over %s", (transport) => {
  let h: Harness;
  beforeEach(async () => {
    h = await harness(transport);
    h.cloud.deploy({ id: "orders", location: LOCATION });
  });
  afterEach(() => h.close());

  test("works on, says why, and comes back", async () => {
    const adapter = h.adapter();
    const { ref } = await adapter.start({ key: newKey(), input: {}, retry: false, signal: signal() });
    const id = String(ref).split("/").at(-1) ?? "";
    h.cloud.update(id, {
      state: "UNAVAILABLE",
      stateError: { type: "KMS_ERROR", details: "key version is disabled" },
    });
    const first = await adapter.read(ref, readRequest({ native: "ACTIVE" }));
    expect(first.status).toBe("working");
    expect(first.message).toBe("The execution's data is unavailable (KMS_ERROR): key version is disabled");
    const second = await h.adapter().read(ref, readRequest({ native: first.native }));
    expect(second.native).toBe(first.native);
    h.cloud.update(id, { state: "ACTIVE" });
    expect((await adapter.read(ref, readRequest({ native: second.native }))).native).toBe("ACTIVE");
  });
});

describe("describeExecution", () => {
  const workflow = { project: "p", location: "l", workflow: "w" };
  const at = (nowMs: number, previousNative?: string) =>
    describeExecution(
      { state: "UNAVAILABLE", stateError: { type: "KMS_ERROR", details: "disabled" } },
      { workflow, execution: "e", previousNative, nowMs, lostAfterMs: 1000 },
    );

  test("counts from the first read that saw it unavailable, and ends as unknown", () => {
    const first = at(5_000, "ACTIVE");
    expect(first).toMatchObject({ native: "UNAVAILABLE since 1970-01-01T00:00:05.000Z", status: "working" });
    expect(at(5_999, first.native).status).toBe("working");
    expect(at(6_000, first.native)).toMatchObject({ status: "unknown", failure: { code: "KMS_ERROR" } });
  });

  test("starts to count anew when it was readable in between", () => {
    expect(at(90_000, "ACTIVE").status).toBe("working");
    expect(at(90_000, "UNAVAILABLE since nonsense").status).toBe("working");
  });

  const failed = (payload: string | undefined, extra = {}) =>
    describeExecution(
      { state: 3, error: { ...(payload !== undefined && { payload }), ...extra } },
      { workflow, execution: "e", nowMs: 0, lostAfterMs: 0 },
    ).failure;

  test.each([
    ['"boom"', { code: "FAILED", message: "boom" }],
    [
      "ZeroDivisionError: division by zero",
      { code: "FAILED", message: "ZeroDivisionError: division by zero" },
    ],
    ['{"code":55,"message":"Out of stock"}', { code: "55", message: "Out of stock" }],
    ['{"code":"OUT_OF_STOCK"}', { code: "OUT_OF_STOCK" }],
    ['{"tags":["TimeoutError","OSError"],"message":"late"}', { code: "TimeoutError", message: "late" }],
    ["[1,2]", { code: "FAILED", message: "[1,2]" }],
    [undefined, { code: "FAILED", message: "The workflow failed without a message" }],
  ])("a payload of %s", (payload, failure) => {
    expect(failed(payload)).toMatchObject(failure);
  });

  test("falls back to the written-out trace", () => {
    expect(failed('"boom"', { context: 'in step "a", routine "main"' })?.text).toBe(
      'boom\n\nin step "a", routine "main"',
    );
  });

  test("a success without a result is null", () => {
    const { output } = describeExecution(
      { state: 2 },
      { workflow, execution: "e", nowMs: 0, lostAfterMs: 0 },
    );
    expect(output).toEqual({ value: null });
  });
});
