import { retry } from "@octokit/plugin-retry";
import { Octokit } from "@octokit/rest";
import { describe, expect, it } from "vitest";
import { githubActions } from "../src/index.js";
import { hello, refusal, Task } from "./world.js";

describe("conditional reads", () => {
  it("of a run that has not changed cost nothing", async () => {
    const { server, state, adapter } = await hello();
    const instance = adapter();
    const task = await new Task().start(instance);
    const run = state.runs[0]!;
    state.set(run, "in_progress");
    state.addJob(run, { name: "build", status: "in_progress" });
    const first = await task.read(instance);
    const left = server.remaining;
    for (let reads = 0; reads < 10; reads += 1) expect(await task.read(instance)).toEqual(first);
    expect(server.remaining).toBe(left);
    state.finish(run, "success");
    expect(await task.read(instance)).toMatchObject({ status: "completed" });
  });

  it("answer each repository and page its own", async () => {
    const { state, adapter } = await hello();
    const instance = adapter();
    const [one, two] = [await new Task().start(instance), await new Task().start(instance)];
    state.set(state.runs[0]!, "in_progress");
    for (let round = 0; round < 2; round += 1) {
      expect(await one.read(instance)).toMatchObject({ native: "in_progress" });
      expect(await two.read(instance)).toMatchObject({ native: "queued" });
    }
  });

  it("forget the oldest of very many answers, and still answer right", async () => {
    const { server, state, repository, adapter } = await hello();
    const instance = adapter({ batchFrom: Number.POSITIVE_INFINITY });
    const read = (index: number) => {
      const task = new Task();
      task.ref = { owner: "octo", repo: "hello", runId: String(state.runs[index]?.id) };
      return task.read(instance);
    };
    for (let index = 0; index < 501; index += 1) {
      state.addRun(repository);
      await read(index);
    }
    const cost = async (index: number) => {
      const before = server.remaining;
      expect(await read(index)).toMatchObject({ native: "queued" });
      return before - server.remaining;
    };
    // The first was forgotten for the last; reading it again forgets the second, and so on.
    expect([await cost(500), await cost(250), await cost(0), await cost(1)]).toEqual([0, 0, 1, 1]);
  });
});

describe("many tasks of one repository", () => {
  it("are read with one list", async () => {
    const { server, state, adapter } = await hello();
    const instance = adapter({ batchWindowMs: 20 });
    const tasks = await Promise.all(Array.from({ length: 30 }, () => new Task().start(instance)));
    for (const [index, run] of state.runs.entries()) if (index % 2 === 0) state.set(run, "pending");
    const before = server.received.length;
    const states = await Promise.all(tasks.map((task) => task.read(instance)));
    expect(server.received.length - before).toBe(1);
    for (const [index, task] of tasks.entries()) {
      const run = state.runs.find(({ id }) => String(id) === (task.ref as { runId: string }).runId)!;
      expect(states[index]?.native).toBe(run.attempts[0]?.status);
    }
  });

  it("older runs than the list shows are read one by one", async () => {
    const { server, state, repository, adapter } = await hello();
    const instance = adapter({ batchWindowMs: 20 });
    const tasks = await Promise.all(Array.from({ length: 5 }, () => new Task().start(instance)));
    for (let index = 0; index < 98; index += 1) state.addRun(repository);
    const before = server.received.length;
    await Promise.all(tasks.map((task) => task.read(instance)));
    expect(server.received.length - before).toBe(1 + 3);
  });

  it("a list that fails is no failure of the reads", async () => {
    const { server, adapter } = await hello();
    const instance = adapter({ batchWindowMs: 20 });
    const tasks = await Promise.all(Array.from({ length: 5 }, () => new Task().start(instance)));
    server.fault({ on: /actions\/runs$/, does: { status: 500, body: { message: "no" } } });
    const states = await Promise.all(tasks.map((task) => task.read(instance)));
    expect(states.map(({ status }) => status)).toEqual(Array(5).fill("submitted"));
  });

  it("one task's deadline is not another's", async () => {
    const { adapter } = await hello();
    const instance = adapter({ batchWindowMs: 20 });
    const tasks = await Promise.all(Array.from({ length: 5 }, () => new Task().start(instance)));
    const aborted = instance.read(tasks[0]!.ref!, {
      key: tasks[0]!.key,
      ageMs: 0,
      isClaimed: async () => false,
      signal: AbortSignal.abort(),
    });
    const others = Promise.all(tasks.slice(1).map((task) => task.read(instance)));
    await expect(aborted).rejects.toThrow();
    expect(await others).toHaveLength(4);
  });
});

describe("rate limits", () => {
  const limited = (headers: Record<string, string>, message = "limit") => ({ body: { message }, headers });
  const inFiveMinutes = () => `${Math.floor(Date.now() / 1000) + 300}`;

  it.each([
    [
      "primary, 403",
      403,
      () => limited({ "x-ratelimit-remaining": "0", "x-ratelimit-reset": inFiveMinutes() }),
      301_000,
    ],
    [
      "primary, 429",
      429,
      () => limited({ "x-ratelimit-remaining": "0", "x-ratelimit-reset": inFiveMinutes() }),
      301_000,
    ],
    ["secondary with retry-after, 403", 403, () => limited({ "retry-after": "17" }), 17_000],
    ["secondary with retry-after, 429", 429, () => limited({ "retry-after": "17" }), 17_000],
    ["secondary without, 403", 403, () => limited({}, "You have exceeded a secondary rate limit"), 60_000],
    ["secondary without, 429", 429, () => limited({}), 60_000],
  ])("%s: is waited for, and nothing is sent meanwhile", async (_, status, answer, waitMs) => {
    const { server, adapter } = await hello();
    const instance = adapter();
    server.fault({ on: /dispatches/, does: { status, ...answer() } });
    const verdict = await refusal(instance, new Task().start(instance));
    expect(verdict).toMatchObject({ kind: "retry", code: "RateLimited" });
    expect(Math.abs((verdict.retryAfterMs ?? 0) - waitMs)).toBeLessThanOrEqual(2000);
    const before = server.received.length;
    const again = await refusal(instance, new Task().start(instance));
    expect(again).toMatchObject({ kind: "retry" });
    expect(Math.abs((again.retryAfterMs ?? 0) - waitMs)).toBeLessThanOrEqual(3000);
    expect(server.received).toHaveLength(before);
  });

  it("a plain 403 is no limit", async () => {
    const { server, adapter } = await hello();
    server.fault({ on: /dispatches/, does: { status: 403, body: { message: "Resource not accessible" } } });
    expect(await refusal(adapter(), new Task().start(adapter()))).toMatchObject({
      kind: "rejected",
      code: "Forbidden",
    });
  });

  it("a budget that runs low is spread over the rest of the hour", async () => {
    const { server, state, adapter } = await hello();
    const instance = adapter();
    const task = await new Task().start(instance);
    expect((await task.read(instance)).nextReadMs).toBeUndefined();
    server.remaining = 100;
    state.set(state.runs[0]!, "in_progress");
    const { nextReadMs = 0 } = await task.read(instance);
    expect(nextReadMs).toBeGreaterThan(30_000);
    expect(nextReadMs).toBeLessThan(60_000);
  });
});

describe("an Octokit of the user's own", () => {
  it("with the retry plugin repeats no write", async () => {
    const { server, options } = await hello();
    const octokit = new (Octokit.plugin(retry))({
      baseUrl: server.url,
      retry: { retryAfterBaseValue: 1 },
      log: { debug() {}, info() {}, warn() {}, error() {} },
    });
    const instance = githubActions({ ...options, octokit });
    server.fault({ on: /dispatches/, does: { status: 502, body: { message: "bad gateway" } }, times: 9 });
    const verdict = await refusal(instance, new Task().start(instance));
    expect(verdict).toMatchObject({ kind: "ambiguous", code: "HTTP502" });
    expect(server.dispatches).toHaveLength(1);
    // Reads may be repeated.
    server.fault({ on: /GET .*contents/, does: { status: 502, body: { message: "bad gateway" } } });
    const other = githubActions({ ...options, octokit, workflow: "ci.yml", ref: "topic" });
    await refusal(other, new Task().start(other));
    expect(server.calls(/GET .*contents/).filter(({ status }) => status === 502)).toHaveLength(1);
    expect(server.dispatches).toHaveLength(2);
  });
});
