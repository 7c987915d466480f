import { describe, expect, it } from "vitest";
import { statusWords } from "../emulator/src/openapi.js";
import { CONCLUSIONS, meaningOf, nativeWord, STATUSES } from "../src/index.js";

describe("the status table", () => {
  it.each([
    ["queued", "submitted"],
    ["requested", "submitted"],
    ["pending", "submitted"],
    ["in_progress", "working"],
    ["waiting", "input_required"],
  ])("%s → %s", (word, status) => {
    expect(meaningOf(word, null)).toEqual({ status });
    // A conclusion that is left over from an earlier attempt means nothing yet.
    expect(meaningOf(word, "failure")).toEqual({ status });
  });

  it.each([
    ["success", { status: "completed", outcome: "output" }],
    ["neutral", { status: "completed", outcome: "output" }],
    ["skipped", { status: "completed", outcome: "output" }],
    ["failure", { status: "completed", outcome: "failure" }],
    ["timed_out", { status: "completed", outcome: "failure" }],
    ["startup_failure", { status: "completed", outcome: "failure" }],
    ["cancelled", { status: "cancelled" }],
    ["stale", { status: "unknown" }],
    ["action_required", { status: "input_required" }],
  ])("completed with %s → %o", (word, meaning) => {
    expect(meaningOf("completed", word)).toEqual(meaning);
  });

  it.each([
    [null, null],
    ["completed", null],
    ["completed", "levitated"],
    ["dreaming", null],
    ["constructor", null],
    ["completed", "toString"],
  ])("%s, %s → unchanged", (status, conclusion) => {
    expect(meaningOf(status, conclusion)).toEqual({ status: "unchanged" });
  });

  it("has every word that GitHub's description lists, and the tests above have every word of the table", () => {
    for (const word of statusWords()) {
      expect(Object.hasOwn(STATUSES, word) || Object.hasOwn(CONCLUSIONS, word) || word === "completed").toBe(
        true,
      );
    }
    expect(Object.keys(STATUSES)).toHaveLength(5);
    expect(Object.keys(CONCLUSIONS)).toHaveLength(9);
  });

  it("names both words", () => {
    expect(nativeWord("completed", "success")).toBe("completed/success");
    expect(nativeWord("completed", null)).toBe("completed/null");
    expect(nativeWord("in_progress", null)).toBe("in_progress");
    expect(nativeWord(null, null)).toBe("null");
  });
});
