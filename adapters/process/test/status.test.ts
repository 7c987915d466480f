import { expect, it } from "vitest";
import type { Ending } from "../src/records.js";
import { nativeWord } from "../src/state.js";
import { type ProcessState, RUN_STATUS } from "../src/status.js";

it("has a canonical status for every word", () => {
  const table: Record<ProcessState, string> = {
    spooled: "submitted",
    running: "working",
    asking: "input_required",
    stopping: "working",
    unsupervised: "working",
    exited: "completed",
    signalled: "completed",
    "timed out": "completed",
    stopped: "cancelled",
    "not started": "failed",
    lost: "failed",
  };
  expect(RUN_STATUS).toEqual(table);
});

it("has a word for every ending, which begins with a word of the table", () => {
  const words: [Ending, string][] = [
    [{ how: "exited", code: 0 }, "exited 0"],
    [{ how: "exited", code: 2 }, "exited 2"],
    [{ how: "signalled", signal: "SIGKILL" }, "signalled SIGKILL"],
    [{ how: "timed out" }, "timed out"],
    [{ how: "stopped" }, "stopped"],
    [{ how: "not started", code: "ENOENT", message: "" }, "not started"],
  ];
  for (const [ending, word] of words) {
    expect(nativeWord(ending)).toBe(word);
    expect(Object.keys(RUN_STATUS)).toContain(ending.how);
  }
});
