import { describe, expect, it } from "vitest";
import { latest } from "../emulator/src/protocol-state.js";
import { hello, refusal, Task } from "./world.js";

async function started() {
  const world = await hello();
  const adapter = world.adapter();
  const task = await new Task().start(adapter);
  const run = world.state.runs[0]!;
  return { ...world, adapter, task, run, read: () => task.read(adapter) };
}

describe("a run that goes on", () => {
  it("is told through queued, pending, requested, in_progress and waiting", async () => {
    const { state, run, read } = await started();
    expect(await read()).toMatchObject({ native: "queued", status: "submitted", message: "Queued" });
    state.set(run, "requested");
    expect(await read()).toMatchObject({ native: "requested", status: "submitted" });
    state.set(run, "pending");
    expect(await read()).toMatchObject({ native: "pending", status: "submitted" });
    expect((await read()).message).toContain("concurrency group");
    state.set(run, "in_progress");
    expect(await read()).toMatchObject({ native: "in_progress", status: "working", attempt: 1 });
    state.set(run, "waiting");
    expect(await read()).toMatchObject({ native: "waiting", status: "working" });
  });

  it("tells jobs done and the running step", async () => {
    const { state, run, read } = await started();
    state.set(run, "in_progress");
    state.addJob(run, { name: "lint", conclusion: "success" });
    state.addJob(run, { name: "unit", conclusion: "failure" });
    state.addJob(run, { name: "deploy" });
    state.addJob(run, {
      name: "build",
      status: "in_progress",
      steps: [
        { name: "Set up job", status: "completed", conclusion: "success" },
        { name: "Compile", status: "in_progress", conclusion: null },
      ],
    });
    expect(await read()).toMatchObject({
      progress: { done: 2, total: 4 },
      message: "2 of 4 jobs done, 1 failed, running: build / Compile",
    });
  });

  it("does not read jobs when progress is not wanted", async () => {
    const { server, state, adapter } = await hello();
    const instance = adapter({ progress: false });
    const task = await new Task().start(instance);
    state.set(state.runs[0]!, "in_progress");
    expect(await task.read(instance)).toMatchObject({ status: "working" });
    expect(server.calls(/\/jobs$/)).toHaveLength(0);
  });

  it("counts 1,200 jobs, and is then read more seldom", async () => {
    const { server, state, run, read } = await started();
    state.set(run, "in_progress");
    for (let index = 0; index < 1200; index += 1) {
      state.addJob(run, { name: `shard ${index}`, conclusion: index < 900 ? "success" : null });
    }
    const going = await read();
    expect(going.progress).toEqual({ done: 900, total: 1200 });
    expect(going.nextReadMs).toBeGreaterThanOrEqual(30_000);
    expect(server.calls(/\/jobs$/)).toHaveLength(12);
  });

  it.each([
    ["dreaming", null, "dreaming"],
    ["completed", "levitated", "completed/levitated"],
    ["completed", null, "completed/null"],
  ])("keeps what is known at words that are new: %s, %s", async (status, conclusion, native) => {
    const { state, run, read } = await started();
    state.set(run, status, conclusion);
    expect(await read()).toMatchObject({ native, status: "unchanged" });
  });
});

describe("a run that ended", () => {
  it.each([
    ["success", "completed", "output"],
    ["neutral", "completed", "output"],
    ["skipped", "completed", "output"],
    ["failure", "completed", "failure"],
    ["timed_out", "completed", "failure"],
    ["startup_failure", "completed", "failure"],
  ] as const)("%s is %s with %s", async (conclusion, status, part) => {
    const { state, run, read } = await started();
    state.finish(run, conclusion);
    const ended = await read();
    expect(ended).toMatchObject({ native: `completed/${conclusion}`, status });
    expect(ended[part]).toMatchObject({ value: { conclusion, runId: String(run.id) } });
    expect(ended[part === "output" ? "failure" : "output"]).toBeUndefined();
    if (part === "failure") expect(ended.failure?.code).toBe(conclusion);
  });

  it("says that a skipped run did nothing, and what a startup failure is", async () => {
    const { state, run, read } = await started();
    state.finish(run, "skipped");
    expect((await read()).output?.text).toContain("nothing was done");
    state.finish(run, "startup_failure");
    expect((await read()).failure?.message).toContain("workflow file is invalid");
  });

  it("cancelled is cancelled, stale is unknown", async () => {
    const { state, run, read } = await started();
    state.finish(run, "cancelled");
    expect(await read()).toMatchObject({ status: "cancelled", native: "completed/cancelled" });
    state.finish(run, "stale");
    expect(await read()).toMatchObject({ status: "unknown", failure: { code: "stale" } });
  });

  it("a deleted run is gone", async () => {
    const { run, adapter, task } = await started();
    run.visible = false;
    expect(await refusal(adapter, task.read(adapter))).toMatchObject({ kind: "gone", code: "NotFound" });
  });
});

describe("attempts", () => {
  it("tells the first attempt's end when the run was run again before it was read", async () => {
    const { state, run, adapter, task } = await started();
    state.addJob(run, { name: "first", conclusion: "failure" });
    state.finish(run, "failure");
    state.addAttempt(run);
    state.set(run, "in_progress");
    state.addJob(run, { name: "second", status: "in_progress" });
    const ended = await task.read(adapter);
    expect(ended).toMatchObject({ attempt: 1, native: "completed/failure", status: "completed" });
    expect(ended.failure?.value).toMatchObject({ attempt: 1, jobs: [{ name: "first" }] });
    expect(ended.url).toContain("/attempts/1");
  });

  it("still tells the pinned attempt when a later one has ended otherwise", async () => {
    const { state, run, adapter, task } = await started();
    state.set(run, "in_progress");
    expect(await task.read(adapter)).toMatchObject({ attempt: 1 });
    state.finish(run, "success");
    state.addAttempt(run);
    state.finish(run, "failure");
    expect(latest(run).number).toBe(2);
    expect(await task.read(adapter)).toMatchObject({ attempt: 1, native: "completed/success" });
  });
});

it("a stored reference of another kind is refused", async () => {
  const { adapter, task } = await started();
  task.ref = { arn: "arn:aws:states" };
  expect(await refusal(adapter, task.read(adapter))).toMatchObject({ kind: "rejected", code: "InvalidRef" });
});
