import * as sdk from "@aws-sdk/client-sfn";
import { EngineError } from "@taskferry/core";
import { describe, expect, it } from "vitest";
import { explainSfn, VERDICTS } from "../src/errors.js";

/** Errors of operations that this adapter never calls. */
const NOT_OURS = new Set([
  "ActivityAlreadyExists",
  "ActivityLimitExceeded",
  "ExecutionNotRedrivable",
  "InvalidDefinition",
  "InvalidEncryptionConfiguration",
  "InvalidLoggingConfiguration",
  "InvalidTracingConfiguration",
  "MissingRequiredParameter",
  "SFNServiceException",
  "StateMachineAlreadyExists",
  "StateMachineLimitExceeded",
  "TooManyTags",
]);

function sdkError(name: string): Error {
  return Object.assign(new Error(`${name}: quotes {"password":"hunter2"}`), { name, $metadata: {} });
}

describe("verdicts", () => {
  it("exist for every error that the SDK declares for this adapter's operations", () => {
    const declared = Object.entries(sdk as Record<string, unknown>)
      .filter(([, value]) => typeof value === "function" && value.prototype instanceof Error)
      .map(([name]) => name)
      .filter((name) => !NOT_OURS.has(name));
    expect(declared.length).toBeGreaterThan(20);
    expect(declared.filter((name) => !Object.hasOwn(VERDICTS, name))).toEqual([]);
  });

  it.each(Object.entries(VERDICTS))("%s", (name, [kind, message]) => {
    expect(explainSfn(sdkError(name))).toEqual({ kind, code: name, message });
    expect(explainSfn(Object.assign(new Error("x"), { code: name }))).toMatchObject({ kind, code: name });
  });

  it.each([["InternalServerError"], ["ServiceUnavailable"], ["TimeoutError"], ["AbortError"], ["toString"]])(
    "%s is ambiguous",
    (name) => {
      expect(explainSfn(sdkError(name))).toMatchObject({ kind: "ambiguous", code: name });
    },
  );

  it.each([["ECONNRESET"], ["EPIPE"]])("%s is ambiguous: the request may have been read", (code) => {
    expect(explainSfn(Object.assign(new Error("x"), { code }))).toMatchObject({ kind: "ambiguous", code });
  });

  it("quote nothing of the raw message", () => {
    for (const name of [...Object.keys(VERDICTS), "InternalServerError"]) {
      expect(explainSfn(sdkError(name)).message).not.toContain("hunter2");
    }
  });

  it("of our own errors stay as they are", () => {
    const verdict = { kind: "rejected", code: "Own", message: "Ours" } as const;
    expect(explainSfn(new EngineError(verdict))).toEqual(verdict);
  });

  it.each([undefined, null, "text", 7])("survive that %j was thrown", (thrown) => {
    expect(explainSfn(thrown)).toMatchObject({ kind: "ambiguous" });
  });
});
