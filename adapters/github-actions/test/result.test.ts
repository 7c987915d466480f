import { Ajv } from "ajv";
import addFormats from "ajv-formats";
import { describe, expect, it } from "vitest";
import { type GitHubActionsOptions, type RunResult, runResultSchema } from "../src/index.js";
import { hello, refusal, Task } from "./world.js";

const ajv = new Ajv({ allowUnionTypes: true });
addFormats.default(ajv);
const fits = ajv.compile(runResultSchema as object);

/** Long enough ago that what is missing will not come any more. */
const LONG_AGO_MS = 3_600_000;

async function finished(options: Partial<GitHubActionsOptions> = {}) {
  const world = await hello();
  const adapter = world.adapter(options);
  const task = await new Task().start(adapter);
  const run = world.state.runs[0]!;
  world.state.addJob(run, { name: "lint", conclusion: "success" });
  const failed = world.state.addJob(run, {
    name: "unit (20)",
    conclusion: "failure",
    steps: [
      { name: "Set up job", status: "completed", conclusion: "success" },
      { name: "Run tests", status: "completed", conclusion: "failure" },
    ],
    log: [
      "\ufeff2026-11-30T10:00:00.1234567Z \u001b[36;1mnpm test\u001b[0m",
      "2026-11-30T10:00:01.0000000Z ✗ adds \u001b[31m1 and 1\u001b[39m",
      "2026-11-30T10:00:02.0000000Z ##[error]Process completed with exit code 1.",
      "2026-11-30T10:00:03.0000000Z Post job cleanup.",
      ...Array.from({ length: 100 }, (_, index) => `2026-11-30T10:00:04.0000000Z cleanup ${index}`),
      "",
    ].join("\n"),
  });
  failed.annotations.push({
    path: "test/add.ts",
    start_line: 7,
    end_line: 7,
    annotation_level: "failure",
    title: "add",
    message: "expected 2, got 3",
  });
  run.artifacts.push(
    { id: 901n, name: "coverage", expired: false },
    { id: 902n, name: "old", expired: true },
  );
  const end = async (conclusion = "failure", agoMs = LONG_AGO_MS) => {
    world.state.finish(run, conclusion, agoMs);
    const state = await task.read(adapter);
    const part = state.failure ?? state.output;
    const value = part?.value as unknown as RunResult;
    expect(fits(value), ajv.errorsText(fits.errors)).toBe(true);
    return { state, value, text: part?.text ?? "", links: part?.links ?? [] };
  };
  return { ...world, adapter, task, run, failed, end };
}

describe("the result of a run", () => {
  it("has jobs, failed steps, annotations, artifacts, links and the log up to the error", async () => {
    const { server, failed, run, end } = await finished();
    const { state, value, text, links } = await end();
    expect(state.failure).toMatchObject({
      code: "failure",
      message: "The run ended with failure: 2 jobs: 1 failed, 1 succeeded; first in unit (20) / Run tests.",
    });
    expect(value.jobCounts).toEqual({
      total: 2,
      succeeded: 1,
      failed: 1,
      cancelled: 0,
      skipped: 0,
      other: 0,
    });
    expect(value.jobs).toMatchObject([
      { name: "unit (20)", conclusion: "failure", failedSteps: ["Run tests"], durationMs: 30_000 },
      { name: "lint", conclusion: "success", failedSteps: [] },
    ]);
    expect(value.annotations).toEqual([
      {
        job: "unit (20)",
        level: "failure",
        title: "add",
        message: "expected 2, got 3",
        path: "test/add.ts",
        line: 7,
      },
    ]);
    const base = `${server.url}/octo/hello/actions/runs/${run.id}`;
    expect(value.artifacts).toMatchObject([
      { name: "coverage", expired: false, url: `${base}/artifacts/901` },
      { name: "old", expired: true },
    ]);
    expect(value.logs).toEqual([
      {
        job: "unit (20)",
        truncated: true,
        text:
          "npm test\n✗ adds 1 and 1\n##[error]Process completed with exit code 1.\n" +
          "Post job cleanup.\ncleanup 0\ncleanup 1",
      },
    ]);
    expect(value.notes).toEqual([]);
    for (const part of [
      "| unit (20) | failure |",
      "unit (20) / Run tests",
      "test/add.ts:7",
      "✗ adds 1 and 1",
      "coverage",
      base,
    ]) {
      expect(text).toContain(part);
    }
    expect(links.map(({ uri }) => uri)).toEqual([base, `${base}/job/${failed.id}`, `${base}/artifacts/901`]);
  });

  it("asks for no logs of a run that succeeded", async () => {
    const { server, failed, end } = await finished();
    failed.conclusion = "success";
    const { value } = await end("success");
    expect(value.logs).toEqual([]);
    expect(server.calls(/\/logs$/)).toHaveLength(0);
  });

  it("shows as much of a log as was asked for", async () => {
    const { failed, end } = await finished({ logs: { lines: 3, bytes: 20 } });
    failed.log = `${"x".repeat(1000)}\nline two\nlast\n##[error]E\n`;
    const { value } = await end();
    expect(value.logs[0]).toMatchObject({ text: "last\n##[error]E", truncated: true });
    expect(Buffer.byteLength(value.logs[0]!.text)).toBeLessThanOrEqual(20);
  });

  it("finds the last lines of a log of many megabytes, and of one endless line", async () => {
    const { failed, end } = await finished();
    failed.log = `${"noise é\n".repeat(1_500_000)}the cause\n##[error]here\n`;
    const { value } = await end();
    expect(value.logs[0]?.text.endsWith("noise é\nthe cause\n##[error]here")).toBe(true);
    expect(value.logs[0]?.text).not.toContain("\ufffd");
    failed.log = "é".repeat(400_000);
    const again = await end();
    expect(Buffer.byteLength(again.value.logs[0]!.text)).toBeLessThanOrEqual(8192);
  });

  it("takes the logs of the first failed jobs, and says how many it left out", async () => {
    const { state, run, end } = await finished({ logs: { jobs: 2 } });
    for (let index = 0; index < 4; index += 1)
      state.addJob(run, { name: `more ${index}`, conclusion: "timed_out" });
    const { value } = await end();
    expect(value.logs).toHaveLength(2);
    expect(value.notes).toContain("Logs: 3 more failed jobs are not shown.");
  });

  it("lists failed jobs first out of 1,200, and counts them all", async () => {
    const { state, run, end } = await finished();
    for (let index = 0; index < 1198; index += 1) {
      state.addJob(run, { name: `shard ${index}`, conclusion: index === 1197 ? "failure" : "success" });
    }
    const { value, text } = await end();
    expect(value.jobCounts).toMatchObject({ total: 1200, failed: 2, succeeded: 1198 });
    expect(value.jobs).toHaveLength(300);
    expect(value.jobs.slice(0, 2).map(({ conclusion }) => conclusion)).toEqual(["failure", "failure"]);
    expect(text.length).toBeLessThan(20_000);
  });
});

describe("what cannot be had does not take the rest with it", () => {
  it("an expired log (410)", async () => {
    const { failed, end } = await finished();
    failed.log = null;
    const { value } = await end();
    expect(value.logs).toEqual([]);
    expect(value.notes).toEqual(["Log of unit (20): GitHub does not keep this any more."]);
    expect(value.annotations).toHaveLength(1);
    expect(value.artifacts).toHaveLength(2);
  });

  it.each([
    ["artifacts", /artifacts/, 410, "Artifacts"],
    ["annotations", /annotations/, 403, "Annotations of unit (20)"],
    ["jobs", /\/jobs\?|\/jobs$/, 404, "Jobs"],
    ["logs", /\/logs$/, 500, "Log of unit (20)"],
  ])("%s that GitHub refuses", async (_, on, status, note) => {
    const { server, end } = await finished();
    server.fault({ on, does: { status, body: { message: "no" } }, times: 5 });
    const { state, value } = await end();
    expect(state.status).toBe("completed");
    expect(value.notes.some((line) => line.startsWith(`${note}: `))).toBe(true);
  });

  it("waits for a log that is not there yet, right after the end", async () => {
    const { state, run, task, adapter, failed } = await finished();
    failed.logLate = true;
    state.finish(run, "failure");
    expect(await refusal(adapter, task.read(adapter))).toMatchObject({ kind: "retry" });
    failed.logLate = false;
    expect((await task.read(adapter)).failure?.value).toMatchObject({ logs: [{ job: "unit (20)" }] });
  });

  it("waits out a hiccup right after the end, without reading again what it has", async () => {
    const { server, state, run, task, adapter } = await finished();
    state.finish(run, "failure");
    server.fault({ on: /artifacts/, does: "cut-before" });
    expect(await refusal(adapter, task.read(adapter))).toMatchObject({ kind: "retry" });
    expect((await task.read(adapter)).status).toBe("completed");
    expect(server.calls(/\/logs$/)).toHaveLength(1);
  });

  it("waits for the rate limit rather than losing the log", async () => {
    const { server, state, run, task, adapter } = await finished();
    state.finish(run, "failure", LONG_AGO_MS);
    server.fault({
      on: /\/logs$/,
      does: { status: 429, body: { message: "slow" }, headers: { "retry-after": "7" } },
    });
    expect(await refusal(adapter, task.read(adapter))).toMatchObject({ kind: "retry", retryAfterMs: 7000 });
  });

  it("a job's name and log cannot break out of the text", async () => {
    const { state, run, failed, end } = await finished();
    failed.log = "````\n# not a heading\n";
    state.addJob(run, { name: "a | b", conclusion: "success" });
    const { text } = await end();
    expect(text).toContain("`````\n````\n# not a heading\n`````");
    expect(text).toContain("a \\| b");
  });
});
