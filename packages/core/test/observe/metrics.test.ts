/** Every metric is there, measures what it says, and costs the database little. */
import { join } from "node:path";
import BetterSqlite3 from "better-sqlite3";
import { expect, onTestFinished, test, vi } from "vitest";
import { DEFAULT_LIMITS } from "../../src/engine/limits.js";
import { createTaskEngine, defineWorkflow, LOCAL_OWNER, type TaskEngine } from "../../src/index.js";
import { TaskGauges } from "../../src/observe/gauges.js";
import { METRICS } from "../../src/observe/observe.js";
import { sqliteStore } from "../../src/store/sqlite.js";
import { CREATED, row } from "../store/rows.js";
import { tempDir, testEngine } from "../support/engines.js";
import { gate, travel } from "../support/gate.js";
import { ASKING, RUNNING, ScriptedEngine } from "../support/scripted-engine.js";
import { until } from "../support/server-process.js";
import { recorder, telemetry } from "./telemetry.js";

const otel = telemetry();
const QUICK = { tickMs: 20, startWaitMs: 500, readWaitMs: 500 };
const owner = LOCAL_OWNER;

/** A workflow on an engine whose words are the test's, under a name of its own: metrics of all tests add up. */
async function scripted(engineName: string, options: Parameters<typeof testEngine>[0] | object = {}) {
  const script = new ScriptedEngine();
  const adapter = { ...script.adapter, engine: engineName };
  const workflow = defineWorkflow({ name: "flow", pollMs: 20, adapter });
  const engine = await testEngine({ workflows: [workflow], timing: QUICK, ...options });
  const create = async () =>
    (await engine.create({ owner, generation: "2026-07-28", workflow: "flow", arguments: {} })).task.taskId;
  return { script, engine, create };
}

const status = async (engine: TaskEngine, taskId: string) => (await engine.get(owner, taskId)).task.status;

test("a task's life is counted: created, started, called for, polled, ended", async () => {
  const { script, engine, create } = await scripted("life");
  const taskId = await create();
  script.state = ASKING;
  await until(async () => expect(await status(engine, taskId)).toBe("input_required"));
  await engine.answer(owner, taskId, { name: { action: "accept", content: { name: "Ann" } } });
  await until(() => expect(script.answers).toHaveLength(1));
  script.state = { native: "DONE", status: "completed", output: { value: 1 } };
  await until(async () => expect(await status(engine, taskId)).toBe("completed"));
  const life = { engine: "life" };
  expect(await otel.value("taskferry.tasks.created", { ...life, generation: "2026-07-28" })).toBe(1);
  expect(await otel.value("taskferry.tasks.ended", { ...life, status: "completed" })).toBe(1);
  expect(await otel.value("taskferry.start.latency", life)).toBe(1);
  for (const name of ["taskferry.native.calls", "taskferry.native.duration"]) {
    const of = (operation: string) => otel.value(name, { ...life, operation, verdict: "ok" });
    expect(await of("start")).toBe(1);
    expect(await of("answer")).toBe(1);
    expect(await of("read")).toBe(script.reads);
  }
});

test("polls are told apart by what they were answered from", async () => {
  const held = gate();
  const read = vi.fn(() => held.opened.then(() => RUNNING));
  const adapter = { ...new ScriptedEngine().adapter, engine: "polled", read };
  const workflow = defineWorkflow({ name: "flow", pollMs: 3_600_000, adapter });
  const { engine, create } = await scripted("polled", { workflows: [workflow] });
  const answered = (answer: string) => otel.value("taskferry.polls", { answer });
  const all = async () =>
    [await answered("read"), await answered("joined"), await answered("row")].map((n) => n ?? 0);
  const taskId = await create();
  const before = await all();
  const first = engine.get(owner, taskId);
  await until(() => expect(read).toHaveBeenCalled());
  const second = engine.get(owner, taskId);
  held.open();
  await Promise.all([first, second]);
  await engine.get(owner, taskId);
  expect((await all()).map((count, i) => count - before[i]!)).toEqual([1, 1, 1]);
  expect(read).toHaveBeenCalledTimes(1);
});

test("the gauges tell what the whole database holds, with zeros, and what is gone again", async () => {
  const { script, engine, create } = await scripted("gauged");
  const tasks = (state: string) => otel.value("taskferry.tasks", { engine: "gauged", status: state });
  await until(async () => expect(await tasks("working")).toBe(0));
  const [going, ended] = [await create(), await create()];
  await until(async () => expect(await status(engine, going)).toBe("working"));
  script.stopped = undefined;
  await engine.cancel(owner, ended, "now");
  travel(20_000);
  await until(async () => expect(await tasks("working")).toBe(1));
  expect(await tasks("cancelled")).toBe(1);
  expect(await otel.value("taskferry.cancels.owed", { engine: "gauged" })).toBe(1);
  expect(await otel.value("taskferry.cancels.oldest", { engine: "gauged" })).toBeGreaterThan(15_000);
  script.state = { native: "DONE", status: "completed", output: { value: 1 } };
  await until(async () => {
    expect(await status(engine, going)).toBe("completed");
    expect((await engine.peek(owner, ended)).task.cancelConfirmedAt).not.toBeNull();
  });
  travel(40_000);
  await until(async () => expect(await tasks("completed")).toBe(1));
  expect(await tasks("working")).toBe(0);
  expect(await otel.value("taskferry.cancels.owed", { engine: "gauged" })).toBe(0);
  expect(await otel.value("taskferry.cancels.oldest", { engine: "gauged" })).toBe(0);
});

test("a closed engine counts no more", async () => {
  const store = await sqliteStore({ path: join(await tempDir(), "tasks.db") });
  const counted = vi.spyOn(store, "countByStatus");
  const engine = await createTaskEngine({ workflows: [], store, timing: QUICK });
  await until(async () => {
    await otel.collect();
    expect(counted).toHaveBeenCalledTimes(1);
  });
  await engine.close();
  travel(60_000);
  await otel.collect();
  expect(counted).toHaveBeenCalledTimes(1);
});

test("however often metrics are collected, the database counts at most every 15 s", async () => {
  const store = await sqliteStore({ path: join(await tempDir(), "tasks.db") });
  const counted = vi.spyOn(store, "countByStatus");
  const workflow = defineWorkflow({ name: "flow", adapter: new ScriptedEngine().adapter });
  const engine = await createTaskEngine({ workflows: [workflow], store, timing: QUICK });
  onTestFinished(() => engine.close());
  await until(async () => {
    await otel.collect();
    expect(counted).toHaveBeenCalled();
  });
  for (let i = 0; i < 20; i++) await otel.collect();
  expect(counted).toHaveBeenCalledTimes(1);
  travel(16_000);
  for (let i = 0; i < 20; i++) await otel.collect();
  expect(counted).toHaveBeenCalledTimes(2);
});

test("a count that takes long is made ever more rarely, and one that fails is made again", async () => {
  const store = await sqliteStore({ path: join(await tempDir(), "tasks.db") });
  let tookMs = 1_000;
  let worked = 0;
  const clock = vi.spyOn(performance, "now").mockImplementation(() => worked);
  onTestFinished(() => clock.mockRestore());
  const counted = vi.spyOn(store, "countByStatus").mockImplementation(async () => {
    worked += tookMs;
    return [{ engine: "slow", status: "working", count: 7 }];
  });
  const gauges = new TaskGauges({ store, engines: ["slow"], log: recorder().log });
  onTestFinished(() => {
    gauges.close();
    return store.close();
  });
  await gauges.tick();
  await otel.collect();
  expect(counted).toHaveBeenCalledTimes(1);
  // A hundred times as long as it took.
  travel(99_000);
  await otel.collect();
  expect(counted).toHaveBeenCalledTimes(1);
  travel(101_000);
  tookMs = 1;
  await otel.collect();
  expect(counted).toHaveBeenCalledTimes(2);
  counted.mockRejectedValueOnce(new Error("the database is away"));
  for (const [ms, times] of [
    [130_000, 3],
    [160_000, 4],
  ] as const) {
    travel(ms);
    // What others measure is not held up by it.
    expect(await otel.value("taskferry.tasks", { engine: "slow", status: "working" })).toBe(7);
    expect(counted).toHaveBeenCalledTimes(times);
  }
});

test("both counts walk through an index alone", async () => {
  const sent = new Set<string>();
  const prepare = BetterSqlite3.prototype.prepare;
  const spy = vi.spyOn(BetterSqlite3.prototype, "prepare").mockImplementation(function (
    this: BetterSqlite3.Database,
    sql: string,
  ) {
    sent.add(sql);
    return prepare.call(this, sql);
  });
  onTestFinished(() => spy.mockRestore());
  const path = join(await tempDir(), "tasks.db");
  const store = await sqliteStore({ path });
  onTestFinished(() => store.close());
  sent.clear();
  await store.insert(row({ status: "working", cancelRequestedAt: 5 }), CREATED);
  sent.clear();
  expect(await store.countByStatus()).toEqual([{ status: "working", engine: "fake", count: 1 }]);
  expect(await store.owedCancels()).toEqual([{ engine: "fake", count: 1, oldestAt: 5 }]);
  spy.mockRestore();
  const database = new BetterSqlite3(path);
  onTestFinished(() => void database.close());
  const plans = [...sent].map((sql) =>
    database
      .prepare(`EXPLAIN QUERY PLAN ${sql}`)
      .all()
      .map((step) => (step as { detail: string }).detail)
      .join("; "),
  );
  expect(plans).toEqual([
    "SCAN tasks USING COVERING INDEX tasks_status",
    expect.stringMatching(/^SCAN tasks USING (COVERING )?INDEX tasks_owed_cancels$/),
  ]);
});

test("a cancel that no engine confirms is warned of, once a minute", async () => {
  const path = join(await tempDir(), "tasks.db");
  const store = await sqliteStore({ path });
  const askedAt = Date.now() - 3_600_000;
  const owed = { status: "cancelled", endedAt: askedAt, cancelRequestedAt: askedAt } as const;
  for (let i = 0; i < 3; i++) await store.insert(row({ ...owed, engine: "deaf" }), CREATED);
  await store.insert(row({ ...owed, engine: "quick", cancelRequestedAt: Date.now() }), CREATED);
  await store.close();
  const { log, warned } = recorder();
  await scripted("served", { path, log });
  await until(() => expect(warned("cancel.long_owed")).toHaveLength(1));
  const [fields] = warned("cancel.long_owed");
  expect(fields).toEqual({ engine: "deaf", owed: 3, oldestMs: expect.any(Number) });
  expect(fields?.["oldestMs"]).toBeGreaterThanOrEqual(3_600_000);
});

test("excessive polling is counted and warned of, once a minute and owner, without the task's id", async () => {
  const { log, warned, lines } = recorder();
  const { engine, create } = await scripted("hammered", {
    log,
    workflows: [
      defineWorkflow({
        name: "flow",
        pollMs: 3_000,
        adapter: { ...new ScriptedEngine().adapter, engine: "hammered" },
      }),
    ],
  });
  const [hammered, other] = [await create(), await create()];
  const before = (await otel.value("taskferry.polls.excessive")) ?? 0;
  for (let i = 0; i < 300; i++) await engine.get(owner, hammered);
  for (let i = 0; i < 300; i++) await engine.get(owner, other);
  expect(warned("polling.excessive")).toEqual([]);
  for (let i = 0; i < 7; i++) await engine.get(owner, hammered);
  expect((await otel.value("taskferry.polls.excessive")) ?? 0).toBe(before + 7);
  expect(warned("polling.excessive")).toEqual([
    {
      owner: expect.stringMatching(/^[0-9a-f]{12}$/),
      task: expect.stringMatching(/^[0-9a-f]{12}$/),
      polls: 301,
      pollMs: 3_000,
    },
  ]);
  expect(JSON.stringify(lines)).not.toContain(hammered);
});

test("limits that are hit are counted by limit, and warned of once a minute and owner", async () => {
  const { log, warned } = recorder();
  const limits = { ...DEFAULT_LIMITS, concurrentTasks: 1, blockedRequests: 1 };
  const { engine, create, script } = await scripted("limited", { log, limits });
  script.state = RUNNING;
  await create();
  for (let i = 0; i < 3; i++) await expect(create()).rejects.toMatchObject({ code: "limit_exceeded" });
  const release = engine.hold(owner);
  onTestFinished(release);
  for (let i = 0; i < 2; i++) expect(() => engine.hold(owner)).toThrow(/Too many waiting/);
  await until(() =>
    expect(warned("limit.hit").map(({ limit }) => limit)).toEqual(["concurrentTasks", "blockedRequests"]),
  );
  expect(await otel.value("taskferry.limits.hits", { limit: "concurrentTasks" })).toBe(3);
  expect(await otel.value("taskferry.limits.hits", { limit: "blockedRequests" })).toBe(2);
});

test("every metric of the table has been seen, with its unit and exactly its attributes", async () => {
  const { engine, create } = await scripted("all");
  await create();
  await expect(engine.get(owner, "not there")).rejects.toThrow("not found");
  await until(async () => {
    const seen = new Map((await otel.points()).map((point) => [point.name, point]));
    for (const { name, unit, attributes, description } of Object.values(METRICS)) {
      const point = seen.get(name);
      expect(point, name).toMatchObject({ unit, description });
      expect(Object.keys(point?.attributes ?? {}).sort(), name).toEqual([...attributes].sort());
    }
    expect(
      [...seen.keys()].filter((name) => !Object.values(METRICS).some((metric) => metric.name === name)),
    ).toEqual([]);
  });
});
