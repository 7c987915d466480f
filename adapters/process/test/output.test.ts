import { statSync, writeFileSync } from "node:fs";
import type { LogPage } from "@taskferry/core";
import { describe, expect, it } from "vitest";
import { isRunning, node, sh, signal, verdictOf } from "./harness.js";

describe("the message", () => {
  it("is the last line so far, without colours", async () => {
    const run = await sh("printf '\\033[31mfirst\\033[0m\\n\\n'; sleep 60");
    expect(await run.untilMessage("first")).toMatchObject({ native: "running", status: "working" });
  });

  it("shows a line that has no end yet", async () => {
    const run = await sh("printf 'Password: '; sleep 60");
    await run.untilMessage("Password:");
  });

  it("comes from stderr too", async () => {
    await (await sh("echo loud >&2; sleep 60")).untilMessage("loud");
  });
});

describe("progress", () => {
  it.each([
    ["3/10", { done: 3, total: 10 }],
    ["7", { done: 7 }],
    ["0.5/1", { done: 0.5, total: 1 }],
  ])("is what the command writes into its file: %s", async (text, progress) => {
    const run = await sh(`echo ${text} > "$TASKFERRY_PROGRESS"; sleep 60`);
    const state = await run.until((now) => expect(now.progress).toEqual(progress));
    expect(state.message).toBeUndefined();
  });

  it("may bring a message, which goes before the output", async () => {
    const run = await sh('echo noise; echo "3/10 Reading src" > "$TASKFERRY_PROGRESS"; sleep 60');
    expect((await run.untilMessage("Reading src")).progress).toEqual({ done: 3, total: 10 });
  });

  it("that is none is no progress", async () => {
    const run = await sh('echo soon > "$TASKFERRY_PROGRESS"; echo ready; sleep 60');
    expect((await run.untilMessage("ready")).progress).toBeUndefined();
  });
});

describe("output", () => {
  it("can be opened by name, as scripts do", async () => {
    const { output } = await (await sh("echo out > /dev/stdout; echo err > /dev/stderr")).untilEnded();
    expect(output?.text).toBe("out\n\n[stderr]\nerr");
  });

  it("of any size stays within the limit on disk, and its end is kept", async () => {
    const run = await node(
      "const line = 'x'.repeat(99) + '\\n'; for (let n = 0; n < 300000; n++) process.stdout.write(line); process.stdout.write('the end\\n')",
      { maxOutputBytes: 100_000 },
    );
    const state = await run.untilEnded();
    expect(state).toMatchObject({ native: "exited 0", message: "the end" });
    expect(state.output?.text).toMatch(
      /^\[the end of \d+ bytes; what came before is in the log, up to its limit\]\nx/,
    );
    expect(state.output?.text?.endsWith("x\nthe end")).toBe(true);
    expect(Buffer.byteLength(state.output?.text as string)).toBeLessThan(17 * 1024);
    expect(statSync(run.file("output.log")).size).toBeLessThan(100_000 + 64 * 1024 + 200);
    const log = await run.wholeLog();
    const total = 300_000 * 100 + "the end\n".length;
    const left = Number(
      /\[taskferry: (\d+) bytes left out, the output limit is 100000 bytes\]/.exec(log)?.[1],
    );
    const notice = log.match(/\n\[taskferry: .*\]\n/)?.[0] as string;
    expect(log.length - notice.length + left).toBe(total);
    expect(log.endsWith("the end\n")).toBe(true);
  });

  it("over the limit still moves the message", async () => {
    const run = await node(
      "process.stdout.write('x'.repeat(5000) + '\\n'); console.log('now here'); setInterval(() => {}, 1000)",
      { maxOutputBytes: 1000 },
    );
    await run.untilMessage("now here");
  });

  it("that is binary is told as text without its control characters", async () => {
    const run = await node(
      "process.stdout.write(Buffer.from(Array.from({ length: 4096 }, (_, n) => n % 256)))",
    );
    const state = await run.untilEnded();
    expect(state.native).toBe("exited 0");
    expect(state.output?.text).not.toMatch(/(?![\n\t])\p{Cc}/u);
    expect(statSync(run.file("output.log")).size).toBe(4096);
  });

  it("of both streams is merged by lines", async () => {
    const run = await node(`
      const { writeSync } = require("node:fs");
      for (let n = 0; n < 200; n++) { writeSync(1, "o" + n); writeSync(2, "e" + n + "\\n"); writeSync(1, "\\n"); }
    `);
    await run.untilEnded();
    const lines = (await run.wholeLog()).trimEnd().split("\n");
    expect(lines.filter((line) => /^[oe]\d+$/.test(line))).toHaveLength(400);
  });

  it("of a grandchild that keeps the pipe open does not delay the end", async () => {
    const run = await sh("sleep 60 & echo $!; echo done");
    const state = await run.untilEnded();
    expect(state).toMatchObject({ native: "exited 0", message: "done" });
    const grandchild = Number(state.output?.text?.split("\n")[0]);
    // The command ended by itself, so what it left behind was meant to stay.
    expect(isRunning(grandchild)).toBe(true);
    process.kill(grandchild, "SIGKILL");
  });
});

describe("the log", () => {
  const sample = "aé€😀\n".repeat(40_000);

  it("is read in pages that never split a character", async () => {
    const run = await node(`process.stdout.write(${JSON.stringify("aé€😀\n")}.repeat(40000))`);
    await run.untilEnded();
    let pages = 0;
    let text = "";
    for (let cursor: string | undefined = "0"; cursor !== undefined; pages++) {
      const page: LogPage | undefined = await run.adapter.logs?.(run.ref, cursor, { signal });
      expect(page?.text).not.toContain("\ufffd");
      text += page?.text;
      cursor = page?.cursor;
    }
    expect(text).toBe(sample);
    expect(pages).toBeGreaterThan(5);
  });

  it("of a running command ends with a cursor, at which the next page goes on", async () => {
    const run = await sh('echo one; until [ -e "$TASKFERRY_ANSWERS/../go" ]; do sleep 0.05; done; echo two');
    await run.untilMessage("one");
    const first = await run.adapter.logs?.(run.ref, undefined, { signal });
    expect(first).toEqual({ text: "one\n", cursor: "4" });
    writeFileSync(run.file("go"), "");
    await run.untilEnded();
    expect(await run.adapter.logs?.(run.ref, "4", { signal })).toEqual({ text: "two\n" });
  });

  it("refuses a cursor that is none, and takes one beyond the end", async () => {
    const run = await sh("echo one");
    await run.untilEnded();
    expect(await verdictOf(run.adapter.logs!(run.ref, "../x", { signal }))).toMatchObject({
      kind: "rejected",
    });
    expect(await run.adapter.logs?.(run.ref, "999", { signal })).toEqual({ text: "" });
  });
});
