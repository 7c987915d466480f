/** Two hosts of one user, each with a server process of its own on the same database. */
import { describe, expect, test } from "vitest";
import { rawClient } from "../support/clients.js";
import { tempDir } from "../support/engines.js";
import type { Json } from "../support/raw-client.js";
import { calls, endRun, hold, open, release, stdioServer, until } from "../support/server-process.js";
import { FORMS, start2025, textOf } from "../support/sessions.js";

const QUICK = { timing: { startWaitMs: 150 } };

async function host(home: string, capabilities: Json = FORMS) {
  const transport = stdioServer(home, QUICK);
  const { client } = await rawClient(transport, "2025-11-25", capabilities);
  const get = async (taskId: string) => (await client.request("tasks/get", { taskId })).result;
  return { client, get, pid: transport.pid!, kill: () => process.kill(transport.pid!, "SIGKILL") };
}

test("each sees the other's tasks, and no run is started, read too soon or stopped twice", async () => {
  const home = await tempDir();
  const [first, second] = await Promise.all([host(home), host(home)]);
  const made = await Promise.all(
    [first, second, first, second].map(({ client }, index) =>
      start2025(client, "at_engine", { label: `${index}` }),
    ),
  );
  for (const { client } of [first, second]) {
    const { tasks } = (await client.request("tasks/list")).result;
    expect(tasks.map((task: Json) => task.taskId).sort()).toEqual([...made].sort());
  }
  expect(calls(home, "engine", "start")).toHaveLength(4);

  // Both poll all of them, as fast as they can, until every run has been read a few times.
  const reads = () => calls(home, "engine", "read");
  const keys = calls(home, "engine", "run").map(({ key }) => key);
  await until(async () => {
    await Promise.all(made.flatMap((taskId) => [first.get(taskId), second.get(taskId)]));
    for (const key of keys) expect(reads().filter((read) => read.key === key).length).toBeGreaterThan(4);
  });
  for (const key of keys) {
    const times = reads()
      .filter((read) => read.key === key)
      .map(({ at }) => at);
    // The interval of 100 ms counts from the end of a read; the first comes with the start.
    for (const [index, at] of times.slice(2).entries())
      expect(at - times[index + 1]!).toBeGreaterThanOrEqual(95);
  }

  // What one has started, the other may cancel, and both hear of.
  await second.client.request("tasks/cancel", { taskId: made[0]! });
  expect((await first.get(made[0]!)).status).toBe("cancelled");
  await until(() => expect(calls(home, "engine", "stop")).toHaveLength(1));

  for (const key of keys) endRun(home, "engine", key);
  const [one, other] = await Promise.all([
    first.client.request("tasks/result", { taskId: made[1] }),
    second.client.request("tasks/result", { taskId: made[1] }),
  ]);
  expect(one.result).toEqual(other.result);
  expect(calls(home, "engine", "start")).toHaveLength(4);
  expect(calls(home, "engine", "stop")).toHaveLength(1);
}, 30_000);

test("a function that runs in one server is followed, asked for and answered from the other", async () => {
  const home = await tempDir();
  const [first, second] = await Promise.all([host(home, {}), host(home)]);
  const gate = `${home}/gate`;
  const gated = await start2025(first.client, "gated", { gate });
  const asking = await start2025(first.client, "greets");
  // The other host polls without a pause, and its server cannot read the function: that must not keep its own from it.
  await until(async () => expect((await second.get(asking)).status).toBe("input_required"));
  second.client.answerer = () => ({ action: "accept", content: { name: "Neighbour" } });
  const answered = second.client.request("tasks/result", { taskId: asking });
  await until(async () => expect((await second.get(asking)).status).toBe("completed"));
  expect(textOf((await answered).result)).toContain("Hello, Neighbour");
  open(gate);
  await until(async () => expect((await second.get(gated)).status).toBe("completed"));
  expect(first.client.requests).toEqual([]);
}, 20_000);

test("a question that waits at one host is asked and answered at the other", async () => {
  const home = await tempDir();
  const [first, second] = await Promise.all([host(home, {}), host(home)]);
  const taskId = await start2025(first.client, "asks_first");
  expect((await second.get(taskId)).status).toBe("input_required");
  const waiting = first.client.request("tasks/result", { taskId });
  second.client.answerer = () => ({ action: "accept", content: { to: "Turin" } });
  const { result } = await second.client.request("tasks/result", { taskId });
  expect(textOf(result)).toContain("Went to Turin");
  expect((await waiting).result).toEqual(result);
  expect(first.client.requests).toEqual([]);
}, 20_000);

describe.each(["a neighbour", "the next process"])("a server killed in mid-start: %s takes over", (who) => {
  async function killedInMidStart(engine: string, name: string, held: string) {
    const home = await tempDir();
    const heir = who === "a neighbour" ? await host(home) : undefined;
    const first = await host(home);
    hold(home, engine, held);
    const taskId = await start2025(first.client, name, { label: "only one" });
    await until(() => expect(calls(home, engine, "start")).toHaveLength(1));
    if (held === "hold-started") await until(() => expect(calls(home, engine, "run")).toHaveLength(1));
    first.kill();
    release(home, engine, held);
    return { home, taskId, heir: heir ?? (await host(home)) };
  }

  test.each([
    ["before the run was there", "hold-start"],
    ["after it was there", "hold-started"],
  ])(
    "an engine that starts once is asked again, killed %s",
    async (_what, held) => {
      const { home, taskId, heir } = await killedInMidStart("engine", "at_engine", held);
      const result = heir.client.request("tasks/result", { taskId });
      await until(() => expect(calls(home, "engine", "read").length).toBeGreaterThan(0));
      const [run, ...more] = calls(home, "engine", "run");
      expect(more).toEqual([]);
      expect(new Set(calls(home, "engine", "start").map(({ key }) => key))).toEqual(new Set([run!.key]));
      endRun(home, "engine", run!.key);
      expect((await result).result.structuredContent).toEqual({ key: run!.key });
    },
    20_000,
  );

  test.each([
    ["before the run was there", "hold-start", 2],
    ["after it was there", "hold-started", 1],
  ])(
    "an engine that can be searched is searched first, killed %s",
    async (_what, held, starts) => {
      const { home, taskId, heir } = await killedInMidStart("searchable", "at_searchable_engine", held);
      const result = heir.client.request("tasks/result", { taskId });
      await until(() => expect(calls(home, "searchable", "read").length).toBeGreaterThan(0));
      const runs = calls(home, "searchable", "run");
      expect(runs).toHaveLength(1);
      expect(calls(home, "searchable", "start")).toHaveLength(starts);
      endRun(home, "searchable", runs[0]!.key);
      expect((await result).result.structuredContent).toEqual({ key: runs[0]!.key });
    },
    20_000,
  );

  test.each(["hold-start", "hold-started"])(
    "an engine that can do neither is not asked again, and the task says why (%s)",
    async (held) => {
      const { home, taskId, heir } = await killedInMidStart("forgetful", "at_forgetful_engine", held);
      const { error } = await heir.client.request("tasks/result", { taskId });
      expect(error?.code).toBe(-32603);
      expect(error?.message).toContain("Start outcome unknown");
      expect((await heir.get(taskId)).status).toBe("failed");
      expect(calls(home, "forgetful", "start")).toHaveLength(1);
    },
    20_000,
  );
});

test("a server that ends in good order hands its work on at once", async () => {
  const home = await tempDir();
  const [first, second] = await Promise.all([host(home), host(home)]);
  const taskId = await start2025(first.client, "at_engine", { label: "goes on" });
  await first.client.close();
  const [run] = calls(home, "engine", "run");
  endRun(home, "engine", run!.key);
  const { result } = await second.client.request("tasks/result", { taskId });
  expect(result.structuredContent).toEqual({ key: run!.key });
}, 20_000);
