import type { Json } from "@taskferry/core";
import { describe, expect, it } from "vitest";
import { latest } from "../emulator/src/protocol-state.js";
import { rerun, rerunSchema, watchRun, watchRunSchema } from "../src/index.js";
import { Claims, eventually, hello, refusal, Task } from "./world.js";

async function withRun() {
  const world = await hello();
  const run = world.state.addRun(world.repository, { branch: "topic" });
  const { baseUrl = "", auth } = world.options;
  const connection = { baseUrl, auth: auth!, owner: "octo", repo: "hello", batchWindowMs: 1 };
  const writes = () => world.server.calls(/^POST/);
  return { ...world, run, connection, writes };
}

describe("watching a run that exists", () => {
  it.each([
    ["its id", (id: bigint, _url: string) => String(id)],
    ["its link", (id: bigint, url: string) => `${url}/octo/hello/actions/runs/${id}`],
    ["a link to its attempt", (id: bigint, url: string) => `${url}/Octo/Hello/actions/runs/${id}/attempts/1`],
    [
      "a link to a job of it",
      (id: bigint, url: string) => `${url}/octo/hello/actions/runs/${id}/job/7?pr=1#step:1`,
    ],
  ])("by %s, starting nothing", async (_, name) => {
    const { server, state, run, connection, writes } = await withRun();
    const adapter = watchRun(connection);
    const task = await new Task().start(adapter, { run: name(run.id, server.url) });
    expect(task.ref).toEqual({ owner: "octo", repo: "hello", runId: String(run.id) });
    state.set(run, "in_progress");
    expect(await task.read(adapter)).toMatchObject({ status: "working" });
    state.finish(run, "success");
    expect(await task.read(adapter)).toMatchObject({
      status: "completed",
      output: { value: { event: "push" } },
    });
    expect(writes()).toHaveLength(0);
  });

  it("by branch or commit: the last one", async () => {
    const { state, repository, run, connection } = await withRun();
    state.addRun(repository, { branch: "topic", createdAtMs: run.createdAtMs - 60_000 });
    state.addRun(repository, { branch: "main" });
    const adapter = watchRun(connection);
    const byBranch = await new Task().start(adapter, { branch: "topic" });
    expect(byBranch.ref).toMatchObject({ runId: String(run.id) });
    const byCommit = await new Task().start(adapter, { commit: run.sha.toUpperCase() });
    expect(byCommit.ref).toMatchObject({ runId: String(run.id) });
  });

  it("of one workflow only, where that is configured", async () => {
    const { state, repository, run, connection } = await withRun();
    const other = { id: 77n, path: ".github/workflows/other.yml", name: "Other", state: "active" };
    repository.workflows.push(other);
    const foreign = state.addRun(repository, { branch: "topic", workflow: other });
    const adapter = watchRun({ ...connection, workflow: "ci.yml" });
    const refused = new Task().start(adapter, { run: String(foreign.id) });
    expect(await refusal(adapter, refused)).toMatchObject({ kind: "rejected", code: "RunNotAllowed" });
    const last = await new Task().start(adapter, { branch: "topic" });
    expect(last.ref).toMatchObject({ runId: String(run.id) });
  });

  it.each([
    [{}, "InvalidInput"],
    [{ run: "1", branch: "main" }, "InvalidInput"],
    [{ run: "abc" }, "InvalidInput"],
    [{ run: "../../user" }, "InvalidInput"],
    [{ run: "https://github.com/octo/hello/pull/3" }, "InvalidInput"],
    [{ run: "https://evil.example/octo/hello/actions/runs/1" }, "RunNotAllowed"],
    [{ commit: "main" }, "InvalidInput"],
    [{ branch: "no-such-branch" }, "RunNotFound"],
    ["text", "InvalidInput"],
  ] as [Json, string][])("%j: %s", async (input, code) => {
    const { connection } = await withRun();
    const adapter = watchRun(connection);
    expect(await refusal(adapter, new Task().start(adapter, input))).toMatchObject({
      kind: "rejected",
      code,
    });
  });

  it("of another repository is refused, of a run that does not exist is gone", async () => {
    const { server, run, connection } = await withRun();
    const adapter = watchRun(connection);
    const link = `${server.url}/evil/hello/actions/runs/${run.id}`;
    expect(await refusal(adapter, new Task().start(adapter, { run: link }))).toMatchObject({
      code: "RepositoryNotAllowed",
    });
    expect(await refusal(adapter, new Task().start(adapter, { run: "404" }))).toMatchObject({ kind: "gone" });
    const later = `${server.url}/octo/hello/actions/runs/${run.id}/attempts/9`;
    expect(await refusal(adapter, new Task().start(adapter, { run: later }))).toMatchObject({
      code: "RunNotFound",
    });
  });

  it("does not cancel it, unless that is configured", async () => {
    const { state, run, connection } = await withRun();
    expect(watchRun(connection).stop).toBeUndefined();
    const adapter = watchRun({ ...connection, cancelRun: true });
    const task = await new Task().start(adapter, { run: String(run.id) });
    state.set(run, "in_progress");
    await task.stop(adapter);
    expect(run.cancels).toEqual(["cancel"]);
  });

  it("many may watch one run, beside the task that started it", async () => {
    const { state, adapter, connection } = await withRun();
    const claims = new Claims();
    await new Task(claims).start(adapter());
    const id = String(state.runs.at(-1)!.id);
    const watch = watchRun(connection);
    for (let watchers = 0; watchers < 3; watchers += 1) await new Task(claims).start(watch, { run: id });
  });
});

describe("running again", () => {
  async function ended() {
    const world = await withRun();
    world.state.addJob(world.run, { name: "ok", conclusion: "success" });
    world.state.addJob(world.run, { name: "bad", conclusion: "failure" });
    world.state.finish(world.run, "failure", 3_600_000);
    return world;
  }

  it.each([
    [{}, "failed", "rerun-failed-jobs"],
    [{ failed_only: false }, "failed", "rerun"],
    [{}, "all", "rerun"],
    [{ failed_only: true }, "all", "rerun-failed-jobs"],
  ] as const)("%j with jobs: %s posts %s, for the new attempt", async (args, jobs, posted) => {
    const { state, run, connection, writes } = await ended();
    const adapter = rerun({ ...connection, jobs });
    const task = await new Task().start(adapter, { run: String(run.id), ...args });
    expect(writes().map(({ route }) => route.replace(/^.*\//, ""))).toEqual([posted]);
    expect(task.ref).toEqual({ owner: "octo", repo: "hello", runId: String(run.id), attempt: 2 });
    expect(await task.read(adapter)).toMatchObject({ status: "submitted", attempt: 2 });
    state.addJob(run, { name: "bad", conclusion: "success" });
    state.finish(run, "success");
    const end = await task.read(adapter);
    expect(end).toMatchObject({ status: "completed", attempt: 2, output: { value: { attempt: 2 } } });
    expect(end.url).toMatch(/\/attempts\/2$/);
  });

  it("leaves the task of the first attempt as it ended", async () => {
    const { run, connection } = await ended();
    const watch = watchRun(connection);
    const first = await new Task().start(watch, { run: String(run.id) });
    const again = rerun(connection);
    await new Task().start(again, { run: String(run.id) });
    expect(await first.read(watch)).toMatchObject({ attempt: 1, native: "completed/failure" });
  });

  it("waits for an attempt that is not shown yet", async () => {
    const { run, connection } = await ended();
    const adapter = rerun(connection);
    const task = await new Task().start(adapter, { run: String(run.id) });
    const hidden = run.attempts.pop()!;
    expect(await task.read(adapter)).toMatchObject({ status: "submitted", attempt: 2 });
    task.boundAtMs -= 600_000;
    expect(await refusal(adapter, task.read(adapter))).toMatchObject({ kind: "gone" });
    run.attempts.push(hidden);
    expect(await task.read(adapter)).toMatchObject({ status: "submitted", native: "queued" });
  });

  it("of a run that has not ended is refused, also when GitHub says it", async () => {
    const { server, state, run, connection, writes } = await ended();
    const adapter = rerun(connection);
    server.fault({ on: /rerun/, does: { status: 403, body: { message: "already running" } } });
    const raced = new Task().start(adapter, { run: String(run.id) });
    expect(await refusal(adapter, raced)).toMatchObject({ kind: "rejected" });
    state.set(run, "in_progress");
    const early = new Task().start(adapter, { run: String(run.id) });
    expect(await refusal(adapter, early)).toMatchObject({ kind: "rejected", code: "StillRunning" });
    expect(writes()).toHaveLength(1);
  });

  it("whose answer was lost is found again, and is one attempt only", async () => {
    const { server, run, connection } = await ended();
    server.fault({ on: /rerun/, does: "cut-after" });
    const claims = new Claims();
    const task = new Task(claims);
    const input = { run: String(run.id) };
    expect(await refusal(rerun(connection), task.start(rerun(connection), input))).toMatchObject({
      kind: "ambiguous",
    });
    const found = await task.find(rerun(connection), input);
    task.bind(found!);
    expect(task.ref).toMatchObject({ attempt: 2 });
    expect(latest(run).number).toBe(2);
    // Another lost re-run must not take the same attempt.
    const other = new Task(claims);
    const adapter = rerun({ ...connection, appearsWithinMs: 40 });
    other.startedAtMs = task.startedAtMs;
    expect(await eventually(() => other.find(adapter, input))).toBeUndefined();
  });

  it("that never reached GitHub is surely none, after a while", async () => {
    const { server, run, connection } = await ended();
    server.fault({ on: /rerun/, does: "cut-before" });
    const adapter = rerun({ ...connection, appearsWithinMs: 40 });
    const task = new Task();
    const input = { run: String(run.id) };
    await refusal(adapter, task.start(adapter, input));
    expect(await eventually(() => task.find(adapter, input))).toBeUndefined();
    expect(latest(run).number).toBe(1);
  });

  it("cancels its own attempt, and not a later one", async () => {
    const { state, run, connection } = await ended();
    const adapter = rerun(connection);
    const task = await new Task().start(adapter, { run: String(run.id) });
    state.set(run, "in_progress");
    await task.stop(adapter);
    state.finish(run, "cancelled");
    state.addAttempt(run);
    await task.stop(adapter);
    expect(run.cancels).toEqual(["cancel"]);
  });
});

it("their arguments have a JSON Schema", () => {
  const target = { repositories: ["octo/*"] };
  expect(Object.keys(watchRunSchema(target)["properties"] as object)).toEqual([
    "repository",
    "run",
    "branch",
    "commit",
  ]);
  expect(rerunSchema({ ...target, jobs: "all" })["properties"]).toMatchObject({
    failed_only: { type: "boolean", default: false },
  });
});
