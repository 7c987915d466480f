import { ExecutionStatus, SyncExecutionStatus } from "@aws-sdk/client-sfn";
import { describe, expect, it } from "vitest";
import { RUN_STATUS, runStatus } from "../src/status.js";

describe("the native state map", () => {
  it("has a row for every status that the SDK knows, and no other", () => {
    const known = new Set<string>([...Object.values(ExecutionStatus), ...Object.values(SyncExecutionStatus)]);
    expect(new Set(Object.keys(RUN_STATUS))).toEqual(known);
  });

  it.each([
    ["RUNNING", "working"],
    ["PENDING_REDRIVE", "working"],
    ["SUCCEEDED", "completed"],
    ["FAILED", "completed"],
    ["TIMED_OUT", "completed"],
    ["ABORTED", "cancelled"],
  ] as const)("%s is %s", (native, status) => {
    expect(runStatus(native)).toBe(status);
  });

  it.each(["PAUSED", "", "running", "constructor", "__proto__"])("%j changes nothing", (native) => {
    expect(runStatus(native)).toBe("unchanged");
  });
});
