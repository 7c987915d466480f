import { describe, expect, it } from "vitest";
import { githubActions } from "../src/index.js";
import { CI, Claims, CORRELATED, eventually, hello, PLAIN, refusal, Task, TOKEN } from "./world.js";

describe("a dispatch that tells the run's id", () => {
  it("starts one run, with inputs as strings and the key in its name", async () => {
    const { server, state, adapter } = await hello();
    const task = await new Task().start(adapter(), { suite: "all", dry_run: true, retries: 3 });
    const [run] = state.runs;
    expect(task.ref).toEqual({ owner: "octo", repo: "hello", runId: String(run?.id) });
    expect(task.url).toBe(`${server.url}/octo/hello/actions/runs/${run?.id}`);
    expect(run?.inputs).toEqual({ suite: "all", dry_run: "true", retries: "3", taskferry_id: task.key });
    expect(run?.title).toBe(`CI ${task.key}`);
    expect(server.dispatches[0]?.headers).toMatchObject({
      authorization: `token ${TOKEN}`,
      "x-github-api-version": "2022-11-28",
    });
  });

  it("asks without the flag from API version 2026-03-10 on", async () => {
    const { server, adapter } = await hello();
    const task = await new Task().start(adapter({ apiVersion: "2026-03-10" }));
    expect(task.ref).toHaveProperty("runId");
    expect(server.dispatches[0]?.body).not.toHaveProperty("return_run_details");
  });

  it("keeps ids above 2^53 to the last digit", async () => {
    const { state, adapter } = await hello();
    state.idsFrom(2n ** 53n + 100n);
    const task = await new Task().start(adapter());
    const [run] = state.runs;
    expect(task.ref).toMatchObject({ runId: "9007199254741093" });
    expect(String(run?.id)).toBe("9007199254741093");
    state.set(run!, "in_progress");
    const job = state.addJob(run!, { name: "build", conclusion: "failure", log: "##[error]no\n" });
    job.annotations.push({ message: "no", path: "a.ts" });
    state.finish(run!, "failure");
    const ended = await task.read(adapter());
    expect(ended.failure?.value).toMatchObject({
      runId: "9007199254741093",
      logs: [{ text: "##[error]no" }],
      annotations: [{ message: "no" }],
    });
  });

  it("runs on the repository's default branch, unless a ref is given", async () => {
    const { server, options } = await hello();
    const { ref: _, ...withoutRef } = options;
    await new Task().start(githubActions(withoutRef));
    await new Task().start(githubActions({ ...options, ref: "topic" }));
    expect(server.dispatches.map(({ body }) => body["ref"])).toEqual(["main", "topic"]);
  });
});

describe("a dispatch that tells no id", () => {
  it("is sent once more, plainer, to a server that refuses the flag, and never with it again", async () => {
    const { server, state, adapter } = await hello();
    server.mode = "strict";
    const instance = adapter();
    await new Task().start(instance);
    await new Task().start(instance);
    expect(server.dispatches.map(({ status, body }) => [status, "return_run_details" in body])).toEqual([
      [422, true],
      [204, false],
      [204, false],
    ]);
    expect(state.runs).toHaveLength(2);
  });

  it("finds its run by the key, however late it appears", async () => {
    const { server, state, adapter } = await hello();
    server.mode = "silent";
    state.hideNewRuns = true;
    const instance = adapter();
    const task = await new Task().start(instance);
    expect(task.ref).toMatchObject({ owner: "octo", repo: "hello", key: task.key, correlated: true });
    for (let reads = 0; reads < 5; reads += 1) {
      expect(await task.read(instance)).toMatchObject({ status: "submitted", native: "dispatched" });
    }
    state.reveal(...state.runs);
    state.set(state.runs[0]!, "in_progress");
    const state1 = await task.read(instance);
    expect(state1).toMatchObject({ status: "working", claim: String(state.runs[0]!.id) });
    expect(task.ref).toEqual({ owner: "octo", repo: "hello", runId: String(state.runs[0]!.id) });
    expect(server.dispatches).toHaveLength(1);
  });

  it("survives a restart between dispatch and correlation", async () => {
    const { server, state, adapter } = await hello();
    server.mode = "silent";
    state.hideNewRuns = true;
    const task = await new Task().start(adapter());
    await new Task(task.claims).start(adapter());
    state.hideNewRuns = false;
    state.reveal(...state.runs);
    await task.read(adapter());
    expect(task.ref).toMatchObject({ runId: String(state.runs[0]!.id) });
    expect(server.dispatches).toHaveLength(2);
  });

  it("keeps twenty simultaneous dispatches apart, whatever order their runs appear in", async () => {
    const { server, state, adapter } = await hello();
    server.mode = "silent";
    state.hideNewRuns = true;
    const claims = new Claims();
    const instances = [adapter(), adapter()];
    const tasks = await Promise.all(
      Array.from({ length: 20 }, (_, index) => new Task(claims).start(instances[index % 2]!)),
    );
    state.reveal(...state.runs.toReversed());
    for (const task of tasks) {
      await task.read(adapter());
      const own = state.runs.find(({ inputs }) => inputs["taskferry_id"] === task.key);
      expect(task.ref).toMatchObject({ runId: String(own?.id) });
    }
  });

  it("ends plainly when no run ever appears", async () => {
    const { server, state, adapter } = await hello();
    server.mode = "silent";
    state.hideNewRuns = true;
    const instance = adapter({ appearsWithinMs: 50 });
    const task = await new Task().start(instance);
    const end = await task.until(instance, ({ status }) => status === "failed");
    expect(end.failure).toMatchObject({ code: "RunNotFound" });
    expect(end.failure?.message).toContain("Nothing was started again");
    expect(server.dispatches).toHaveLength(1);
  });
});

describe("without an id and without a key in the run's name", () => {
  it("takes the one run that appears, and leaves older and other runs alone", async () => {
    const { server, state, repository, adapter } = await hello(PLAIN);
    server.mode = "silent";
    state.addRun(repository, { event: "workflow_dispatch", createdAtMs: state.now() - 60_000 });
    state.addRun(repository, { event: "push" });
    state.addRun(repository, { event: "workflow_dispatch", branch: "topic" });
    const instance = adapter();
    const task = await new Task().start(instance, { suite: "unit" });
    const own = state.runs.at(-1)!;
    expect(own.inputs).toEqual({ suite: "unit" });
    await task.until(instance, ({ ref }) => ref !== undefined);
    expect(task.ref).toMatchObject({ runId: String(own.id) });
  });

  it("tells five dispatches of one second apart, because each waits for the run before it", async () => {
    const { server, state, adapter } = await hello(PLAIN);
    server.mode = "silent";
    const claims = new Claims();
    const instance = adapter();
    const tasks = await Promise.all(
      Array.from({ length: 5 }, (_, index) => new Task(claims).start(instance, { suite: `s${index}` })),
    );
    // The last one looks first, so it must know by itself which runs are older than its own.
    for (const [index, task] of [...tasks.entries()].reverse()) {
      // A new process has only what was stored.
      await task.until(adapter(), ({ ref }) => ref !== undefined);
      const run = state.runs.find(({ id }) => String(id) === (task.ref as { runId: string }).runId);
      expect(run?.inputs).toEqual({ suite: `s${index}` });
    }
    expect(new Set(tasks.map(({ ref }) => (ref as { runId: string }).runId)).size).toBe(5);
  });

  it("does not take a run that another task holds", async () => {
    const { server, state, repository, adapter } = await hello(PLAIN);
    server.mode = "silent";
    state.hideNewRuns = true;
    const claims = new Claims();
    const instance = adapter();
    const task = await new Task(claims).start(instance);
    const foreign = state.addRun(repository, { event: "workflow_dispatch", visible: true });
    claims.take("another task", String(foreign.id));
    expect(await task.read(instance)).toMatchObject({ status: "submitted" });
    state.reveal(state.runs[0]!);
    await task.until(instance, ({ ref }) => ref !== undefined);
    expect(task.ref).toMatchObject({ runId: String(state.runs[0]!.id) });
  });

  it("says which runs it could not tell apart, and starts nothing again", async () => {
    const { server, state, repository, adapter } = await hello(PLAIN);
    server.mode = "silent";
    state.hideNewRuns = true;
    const instance = adapter();
    const task = await new Task().start(instance);
    const other = state.addRun(repository, { event: "workflow_dispatch" });
    state.reveal(...state.runs);
    const end = await task.until(instance, ({ status }) => status === "failed");
    expect(end.failure?.code).toBe("AmbiguousRun");
    expect(end.failure?.message).toContain(String(other.id));
    expect(end.failure?.message).toContain(String(state.runs[0]!.id));
    expect(end.failure?.links).toHaveLength(2);
    expect(server.dispatches).toHaveLength(1);
  });

  it("does not guess between two of its own whose runs are both late", async () => {
    const { server, state, adapter } = await hello(PLAIN);
    server.mode = "silent";
    state.hideNewRuns = true;
    const claims = new Claims();
    const instance = adapter();
    const first = await new Task(claims).start(instance, { suite: "a" });
    const second = await new Task(claims).start(instance, { suite: "b" });
    // Only the second one's run is there, and it looks like the first one's.
    state.reveal(state.runs[1]!);
    for (const task of [first, second]) {
      const end = await task.until(instance, ({ status }) => status === "failed");
      expect(end.failure?.code).toBe("AmbiguousRun");
    }
  });
});

describe("a start whose answer was lost", () => {
  for (const does of ["cut-before", "cut-after"] as const) {
    it(`${does}: is ambiguous, and is not repeated by Octokit`, async () => {
      const { server, adapter } = await hello();
      server.fault({ on: /dispatches/, does });
      const task = new Task();
      expect(await refusal(adapter(), task.start(adapter()))).toMatchObject({
        kind: "ambiguous",
        code: "NoAnswer",
      });
      expect(server.dispatches).toHaveLength(1);
    });
  }

  it("is found again by its key, in a new process, also when the run appears late", async () => {
    const { server, state, adapter } = await hello();
    state.hideNewRuns = true;
    server.fault({ on: /dispatches/, does: "cut-after" });
    const task = new Task();
    await refusal(adapter(), task.start(adapter()));
    await new Task(task.claims).start(adapter());
    expect(await refusal(adapter(), task.find(adapter()))).toMatchObject({ kind: "retry" });
    state.reveal(...state.runs);
    const found = await task.find(adapter());
    expect(found).toMatchObject({
      ref: { owner: "octo", repo: "hello", runId: String(state.runs[0]!.id) },
      claim: String(state.runs[0]!.id),
    });
    expect(server.dispatches).toHaveLength(2);
  });

  it("is surely none when no run with the key has appeared for long", async () => {
    const { server, adapter } = await hello();
    server.fault({ on: /dispatches/, does: "cut-before" });
    const instance = adapter({ appearsWithinMs: 30 });
    const task = new Task();
    await refusal(instance, task.start(instance));
    expect(await eventually(() => task.find(instance))).toBeUndefined();
  });

  it("after a second attempt, waits from that one on, and still finds the run of the first", async () => {
    const { state, repository, adapter } = await hello();
    const instance = adapter({ appearsWithinMs: 60_000 });
    const task = new Task();
    task.startedAtMs = Date.now() - 3_600_000;
    task.lastStartedAtMs = Date.now() - 30_000;
    expect(await refusal(instance, task.find(instance))).toMatchObject({ kind: "retry" });
    task.lastStartedAtMs = Date.now() - 61_000;
    expect(await task.find(instance)).toBeUndefined();
    const createdAtMs = state.now() - 3_500_000;
    const run = state.addRun(repository, {
      event: "workflow_dispatch",
      title: `CI ${task.key}`,
      createdAtMs,
    });
    expect((await task.find(instance))?.claim).toBe(String(run.id));
  });

  it("without a key: takes a single run when things have settled, and says when there are several", async () => {
    const { server, state, repository, adapter } = await hello(PLAIN);
    server.fault({ on: /dispatches/, does: "cut-after" });
    const instance = adapter();
    const task = new Task();
    await refusal(instance, task.start(instance));
    const found = await eventually(() => task.find(instance));
    expect(found?.claim).toBe(String(state.runs[0]!.id));
    state.addRun(repository, { event: "workflow_dispatch" });
    const verdict = await refusal(instance, task.find(instance));
    expect(verdict).toMatchObject({ kind: "rejected", code: "AmbiguousRun" });
  });

  it("finds the run in spite of a clock that is minutes off", async () => {
    const { server, state, adapter } = await hello(PLAIN);
    state.clockSkewMs = -240_000;
    server.fault({ on: /dispatches/, does: "cut-after" });
    const task = new Task();
    const instance = adapter();
    await refusal(instance, task.start(instance));
    expect((await eventually(() => task.find(adapter())))?.claim).toBe(String(state.runs[0]!.id));
  });
});

describe("a dispatch that is refused", () => {
  it.each([
    ["the trigger is missing at the ref", "on: push", "NotDispatchable"],
    ["an undeclared input is sent", CORRELATED, "UnexpectedInputs"],
  ])("%s: nothing is sent", async (_, file, code) => {
    const { server, adapter } = await hello(file);
    const verdict = await refusal(adapter(), new Task().start(adapter(), { colour: "s3cret" }));
    expect(verdict).toMatchObject({ kind: "rejected", code });
    expect(verdict.message).not.toContain("s3cret");
    expect(server.dispatches).toHaveLength(0);
  });

  it.each([
    ["trigger missing", "on: push", {}, "NotDispatchable"],
    ["unexpected input", PLAIN, { colour: "s3cret" }, "UnexpectedInputs"],
    ["missing input", PLAIN.replace("type: string", "type: string, required: true"), {}, "MissingInput"],
  ])("422 of GitHub's own, when the file cannot be read: %s", async (_, file, input, code) => {
    const { server, state, adapter } = await hello(file);
    server.fault({ on: /contents/, does: { status: 403, body: { message: "no" } }, times: 9 });
    const verdict = await refusal(adapter(), new Task().start(adapter(), input));
    expect(verdict).toMatchObject({ kind: "rejected", code });
    expect(verdict.message).not.toContain("s3cret");
    expect(state.runs).toHaveLength(0);
    expect(server.dispatches).toHaveLength(1);
  });

  it("unknown ref, unknown workflow, unknown repository", async () => {
    const { options } = await hello();
    const start = (more: object) => {
      const instance = githubActions({ ...options, ...more });
      return refusal(instance, new Task().start(instance));
    };
    expect(await start({ ref: "nowhere" })).toMatchObject({ kind: "rejected", code: "RefNotFound" });
    expect(await start({ workflow: "no.yml" })).toMatchObject({ kind: "rejected", code: "WorkflowNotFound" });
    expect(await start({ repo: "no" })).toMatchObject({ kind: "rejected", code: "WorkflowNotFound" });
  });

  it("reads the workflow file at the ref that is dispatched", async () => {
    const { repository, adapter } = await hello();
    repository.branchFiles.set(`topic:${CI}`, PLAIN);
    const verdict = await refusal(adapter(), new Task().start(adapter({ ref: "topic" }), { dry_run: true }));
    expect(verdict).toMatchObject({ code: "UnexpectedInputs" });
  });
});
