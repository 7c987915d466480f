import { createRequire } from "node:module";
import { describe, expect, test } from "vitest";
import { EXECUTION_STATES, executionStatus } from "../src/index.js";

/** The vendor's own enum, as the client package ships it. */
function vendorStates(): Record<string, number> {
  const { nested } = createRequire(import.meta.url)("@google-cloud/workflows/build/protos/protos.json");
  const v1 = nested.google.nested.cloud.nested.workflows.nested.executions.nested.v1.nested;
  return v1.Execution.nested.State.values;
}

describe("the status table", () => {
  test("has every state of the vendor's proto under its number, and no other", () => {
    const table = Object.entries(EXECUTION_STATES).map(([name, { number }]) => [name, number]);
    expect(Object.fromEntries(table)).toEqual(vendorStates());
  });

  test.each([
    ["STATE_UNSPECIFIED", 0, "unchanged"],
    ["ACTIVE", 1, "working"],
    ["SUCCEEDED", 2, "completed"],
    ["FAILED", 3, "completed"],
    ["CANCELLED", 4, "cancelled"],
    ["UNAVAILABLE", 5, "working"],
    ["QUEUED", 6, "submitted"],
  ])("%s, by name or as %i, is %s", (name, number, status) => {
    expect(executionStatus(name)).toEqual({ native: name, known: name, status });
    expect(executionStatus(number)).toEqual({ native: name, known: name, status });
  });

  test.each([
    [7, "STATE_7"],
    [-1, "STATE_-1"],
    ["PAUSED", "PAUSED"],
    ["active", "active"],
    ["toString", "toString"],
    ["2", "2"],
  ])("an unknown %s keeps the last status", (state, native) => {
    expect(executionStatus(state)).toEqual({ native, known: undefined, status: "unchanged" });
  });

  test.each([undefined, null])("%s keeps the last status", (state) => {
    expect(executionStatus(state).status).toBe("unchanged");
  });
});
