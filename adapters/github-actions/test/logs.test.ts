import type { LogPage, WorkflowAdapter } from "@taskferry/core";
import { describe, expect, it } from "vitest";
import { hello, refusal, Task } from "./world.js";

const MINUTES_AGO = 300_000;

async function running() {
  const world = await hello();
  const adapter = world.adapter();
  const task = await new Task().start(adapter);
  const run = world.state.runs[0]!;
  world.state.set(run, "in_progress");
  const job = (name: string, log: string, endedAgoMs = MINUTES_AGO) =>
    world.state.addJob(run, {
      name,
      conclusion: "success",
      log,
      completedAtMs: world.state.now() - endedAgoMs,
    });
  const page = (cursor?: string) => adapter.logs!(task.ref!, cursor, { signal: task.signal });
  return { ...world, adapter, task, run, job, page };
}

async function all(adapter: WorkflowAdapter, task: Task): Promise<{ text: string; pages: number }> {
  let text = "";
  let pages = 0;
  let page: LogPage = { text: "", cursor: "0.0" };
  do {
    page = await adapter.logs!(task.ref!, pages === 0 ? undefined : page.cursor, { signal: task.signal });
    text += page.text;
    pages += 1;
  } while (page.cursor !== undefined);
  return { text, pages };
}

describe("a run's log", () => {
  it("grows by the jobs that have ended, and is complete when the run is", async () => {
    const { state, run, job, page } = await running();
    const nothing = await page();
    expect(nothing).toEqual({ text: "", cursor: "0.0" });
    job("lint", "2026-11-30T10:00:00.0000000Z \u001b[32mok\u001b[0m\n");
    const first = await page(nothing.cursor);
    expect(first.text).toBe("=== lint: success ===\nok\n");
    expect(await page(first.cursor)).toEqual({ text: "", cursor: first.cursor });
    job("unit", "passed\n", MINUTES_AGO - 1000);
    state.finish(run, "success");
    const last = await page(first.cursor);
    expect(last).toEqual({ text: "=== unit: success ===\npassed\n" });
  });

  it("waits with the newest jobs, which may be listed out of order", async () => {
    const { job, page } = await running();
    job("newest", "x\n", 0);
    expect((await page()).text).toBe("");
  });

  for (const ranges of [true, false]) {
    it(`of megabytes comes page by page, whole (storage ${ranges ? "knows" : "does not know"} ranges)`, async () => {
      const { server, state, run, job, adapter, task } = await running();
      server.storageKnowsRanges = ranges;
      const lines = Array.from({ length: 20_000 }, (_, index) => `line ${index} é`).join("\n");
      job("big", `${lines}\n`);
      job("small", "end\n", MINUTES_AGO - 1000);
      state.finish(run, "success");
      const { text, pages } = await all(adapter, task);
      expect(text).toBe(`=== big: success ===\n${lines}\n=== small: success ===\nend\n`);
      expect(pages).toBeGreaterThan(3);
    });
  }

  it("goes on past a log that has expired, and past skipped jobs", async () => {
    const { state, run, job, adapter, task } = await running();
    job("old", "x").log = null;
    state.addJob(run, { name: "skipped", conclusion: "skipped" });
    job("new", "here\n", MINUTES_AGO - 1000);
    state.finish(run, "success");
    expect((await all(adapter, task)).text).toBe(
      "=== old: success ===\n[GitHub does not keep this log any more]\n=== new: success ===\nhere\n",
    );
  });

  it("of a run without jobs is empty and complete", async () => {
    const { state, run, page } = await running();
    state.finish(run, "startup_failure");
    expect(await page()).toEqual({ text: "" });
  });

  it("of a dispatch whose run is not there yet is empty so far", async () => {
    const { server, state, adapter } = await hello();
    server.mode = "silent";
    state.hideNewRuns = true;
    const instance = adapter();
    const task = await new Task().start(instance);
    const page = await instance.logs!(task.ref!, undefined, { signal: task.signal });
    expect(page).toEqual({ text: "", cursor: "0.0" });
  });

  it.each(["nonsense", "1", "1.2.3.4", "-1.2", "1.2.x"])("refuses the cursor %j", async (cursor) => {
    const { adapter, page } = await running();
    expect(await refusal(adapter, page(cursor))).toMatchObject({ kind: "rejected", code: "InvalidCursor" });
  });
});
