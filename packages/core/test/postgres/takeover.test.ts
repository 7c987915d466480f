/** Work is done once, however many servers there are, and however they end. */
import { expect, test } from "vitest";
import { postgres } from "../store/databases.js";
import { calls, endRun, hold, open, release, until } from "../support/server-process.js";
import { session, start2025 } from "../support/sessions.js";
import { Site } from "./replica.js";

const database = postgres();
const BOUND = { timeout: 40_000 };
const TASKS = 12;

test("what a killed server owed is started once, by whichever of two others comes first", BOUND, async () => {
  const site = await Site.on(database);
  const [a, b, c] = await site.replicas(3);
  hold(site.home, "engine", "hold-start");
  const made = await Promise.all(
    Array.from({ length: TASKS }, (_, i) => a!.start("at_engine", { label: `${i}` })),
  );
  const starts = () => calls(site.home, "engine", "start");
  await until(() => expect(starts()).toHaveLength(TASKS));
  expect(new Set(starts().map(({ pid }) => pid))).toEqual(new Set([a!.pid]));
  await a!.end();
  release(site.home, "engine", "hold-start");
  await until(() => expect(calls(site.home, "engine", "run")).toHaveLength(TASKS));
  await until(async () => {
    for (const taskId of made) expect((await b!.get(taskId)).statusMessage).toBe("at it");
  });
  // One start each by the dead server, and one each by its heirs together.
  const [ours, theirs] = [starts().filter(({ pid }) => pid !== a!.pid), starts().slice(0, TASKS)];
  expect(new Set(ours.map(({ key }) => key)).size).toBe(TASKS);
  expect(ours).toHaveLength(TASKS);
  expect(new Set(theirs.map(({ key }) => key))).toEqual(new Set(ours.map(({ key }) => key)));
  for (const { pid } of ours) expect([b!.pid, c!.pid]).toContain(pid);
});

test("a server dies in the middle of a run: another reads it to its end, asked or not", BOUND, async () => {
  const site = await Site.on(database);
  const [a, b] = await site.replicas(2);
  const [asked, unasked] = [
    await a!.start("at_engine", { label: "asked" }),
    await a!.start("at_engine", { label: "nobody asks" }),
  ];
  const waiter = await session(b!.url);
  const waiting = waiter.request("tasks/result", { taskId: asked });
  await a!.end();
  for (const { key } of calls(site.home, "engine", "run")) endRun(site.home, "engine", key);
  const { result } = await waiting;
  expect(result.isError ?? false).toBe(false);
  await until(async () => {
    const [row] = await site.query('SELECT status FROM tasks WHERE "taskId" = $1', [unasked]);
    expect(row?.status).toBe("completed");
  });
  expect(calls(site.home, "engine", "start")).toHaveLength(2);
});

test(
  "a live server keeps its lease for as long as its call takes; a dead one's runs out",
  BOUND,
  async () => {
    const site = await Site.on(database);
    const [a, b] = await site.replicas(2);
    hold(site.home, "engine", "hold-read");
    const taskId = await a!.start("at_engine", { label: "slow" });
    const reads = () => calls(site.home, "engine", "read");
    await until(() => expect(reads()).toHaveLength(1));
    const [reading] = reads();
    const [holder, other] = reading!.pid === a!.pid ? [a!, b!] : [b!, a!];
    // Three times as long as the lease would hold without renewal.
    await until(async () => {
      expect((await other.get(taskId)).status).toBe("working");
      expect(Date.now() - reading!.at).toBeGreaterThan(1_800);
    });
    expect(reads()).toHaveLength(1);
    await holder.end();
    await until(async () => {
      await other.get(taskId);
      expect(reads().map(({ pid }) => pid)).toContain(other.pid);
    });
    release(site.home, "engine", "hold-read");
    await until(async () => expect((await other.get(taskId)).statusMessage).toBe("at it"));
  },
);

test("SIGTERM gives leases back: others need not wait for them to run out", BOUND, async () => {
  const site = await Site.on(database);
  // Longer than this test may take.
  const timing = { leaseMs: 120_000, drainMs: 100 };
  const a = await site.replica({ timing });
  hold(site.home, "engine", "hold-start");
  const made = await Promise.all([1, 2, 3].map((i) => a.start("at_engine", { label: `${i}` })));
  await until(() => expect(calls(site.home, "engine", "start")).toHaveLength(3));
  const held = 'SELECT "taskId" FROM tasks WHERE "leaseHolder" IS NOT NULL';
  expect(await site.query(held)).toHaveLength(3);
  expect(await a.end("SIGTERM")).toBe(0);
  expect(a.stderr).toContain("Closed");
  expect(await site.query(held)).toEqual([]);
  release(site.home, "engine", "hold-start");
  const b = await site.replica({ timing });
  await until(async () => {
    for (const taskId of made) expect((await b.get(taskId)).statusMessage).toBe("at it");
  });
  expect(calls(site.home, "engine", "run")).toHaveLength(3);
});

test("a cancel outlives the server that took it, and its engine is told once", BOUND, async () => {
  const site = await Site.on(database);
  const [a, b] = await site.replicas(2);
  hold(site.home, "engine", "hold-start");
  const client = await session(a!.url);
  const taskId = await start2025(client, "at_engine", { label: "unwanted" });
  await until(() => expect(calls(site.home, "engine", "start")).toHaveLength(1));
  await client.request("tasks/cancel", { taskId });
  expect((await b!.get(taskId)).status).toBe("cancelled");
  await a!.end();
  release(site.home, "engine", "hold-start");
  await until(() => expect(calls(site.home, "engine", "stop")).toHaveLength(1));
  const confirmed = 'SELECT 1 FROM tasks WHERE "cancelConfirmedAt" IS NOT NULL';
  await until(async () => expect(await site.query(confirmed)).toHaveLength(1));
  expect(calls(site.home, "engine", "run")).toHaveLength(1);
  expect(calls(site.home, "engine", "stop").map(({ pid }) => pid)).toEqual([b!.pid]);
});

test("expired tasks are swept once", BOUND, async () => {
  const site = await Site.on(database);
  const [a, b] = await site.replicas(2, { timing: { sweepMs: 20 } });
  const clients = await Promise.all([session(a!.url), session(b!.url)]);
  const start = async (i: number) => {
    const call = { name: "echo", arguments: { text: `${i}` }, task: { ttl: 100 } };
    return (await clients[i % 2]!.request("tools/call", call)).result.task.taskId as string;
  };
  const made = await Promise.all(Array.from({ length: 40 }, (_, i) => start(i)));
  await until(async () => expect(await site.query("SELECT 1 FROM tasks")).toEqual([]));
  const swept = await site.query(`SELECT "taskId" FROM events WHERE type = 'task.expired'`);
  expect(swept.map(({ taskId }) => taskId).sort()).toEqual([...made].sort());
  const { error } = await clients[1]!.request("tasks/get", { taskId: made[0]! });
  expect(error?.message).toContain("expired");
});

test("a function that ran in a server that died has failed, and is not working for ever", BOUND, async () => {
  const site = await Site.on(database);
  const [a, b] = await site.replicas(2);
  const gate = `${site.home}/gate`;
  const taskId = await a!.start("gated", { gate });
  await until(async () => expect((await b!.get(taskId)).statusMessage).toContain("one of three"));
  await a!.end();
  await until(async () => expect((await b!.get(taskId)).status).toBe("failed"));
  open(gate);
  expect((await b!.get(taskId)).status).toBe("failed");
});
