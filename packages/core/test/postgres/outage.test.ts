/** The database goes away under running servers, in part or whole, and comes back. */
import { describe, expect, test } from "vitest";
import { postgres } from "../store/databases.js";
import { calls, endRun, hold, open, release, until } from "../support/server-process.js";
import { session, start2025 } from "../support/sessions.js";
import { cluster } from "./cluster.js";
import { Site } from "./replica.js";

const BOUND = { timeout: 60_000 };
const UNAVAILABLE = { code: -32603, message: "PostgreSQL cannot be reached; try again" };

describe("connections that break", () => {
  const database = postgres();

  test("the one that listens: a blocked tasks/result and a listen still wake", BOUND, async () => {
    const site = await Site.on(database);
    const [a, b] = await site.replicas(2);
    const [maker, waiter] = await Promise.all([session(a!.url), session(b!.url)]);
    const gate = `${site.home}/gate`;
    const taskId = await start2025(maker, "gated", { gate });
    const waiting = waiter.request("tasks/result", { taskId });
    const listen = await b!.listen([taskId]);
    await until(async () => expect(await site.cutListeners()).toBeGreaterThan(0));
    const opened = performance.now();
    open(gate);
    expect((await waiting).result.structuredContent).toEqual({ opened: "yes" });
    await listen.note(taskId, ({ status }) => status === "completed");
    // An unwoken wait looks at its row every 30 s.
    expect(performance.now() - opened).toBeLessThan(15_000);
  });

  test("all of them, again and again: polls go on, and work is done once", BOUND, async () => {
    const site = await Site.on(database);
    const replicas = await site.replicas(2);
    const made = await Promise.all(
      [0, 1, 2, 3].map((i) => replicas[i % 2]!.start("at_engine", { label: "x" })),
    );
    const others =
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'taskferry'";
    for (let round = 0; round < 5; round++) {
      expect((await site.query(others)).length).toBeGreaterThan(0);
      await until(async () => {
        for (const [i, taskId] of made.entries())
          expect((await replicas[i % 2]!.get(taskId)).status).toBe("working");
      });
    }
    for (const { key } of calls(site.home, "engine", "run")) endRun(site.home, "engine", key);
    await until(async () => {
      for (const taskId of made) expect((await replicas[0]!.get(taskId)).status).toBe("completed");
    });
    expect(calls(site.home, "engine", "start")).toHaveLength(4);
    expect(replicas.every(({ lives }) => lives)).toBe(true);
  });
});

describe("a database that restarts", () => {
  const database = cluster();

  test("polls and calls say to try again meanwhile; afterwards nothing is lost", BOUND, async () => {
    const site = await Site.on(database);
    const [a, b] = await site.replicas(2);
    const taskId = await a!.start("at_engine", { label: "goes on" });
    const cancelled = await a!.start("at_engine", { label: "cancelled" });
    await b!.request("tasks/cancel", { taskId: cancelled });
    await until(async () => expect((await a!.get(cancelled)).status).toBe("cancelled"));
    const waiter = await session(b!.url);
    const waiting = waiter.request("tasks/result", { taskId });
    const listen = await a!.listen([taskId]);

    await database.stop();
    for (const replica of [a!, b!]) {
      expect((await replica.request("tasks/get", { taskId })).error).toMatchObject(UNAVAILABLE);
      const call = { name: "at_engine", arguments: { label: "refused" } };
      expect((await replica.request("tools/call", call)).error).toMatchObject(UNAVAILABLE);
      expect((await replica.request("tasks/cancel", { taskId })).error).toMatchObject(UNAVAILABLE);
      expect(await replica.status("/ready")).toBe(503);
      expect(await replica.status("/health")).toBe(200);
    }
    // Its run ends while nobody can write that down.
    const [run] = calls(site.home, "engine", "run");
    endRun(site.home, "engine", run!.key);
    await database.start();

    for (const replica of [a!, b!]) {
      await until(async () => expect(await replica.status("/ready")).toBe(200));
      await until(async () => expect((await replica.get(taskId)).status).toBe("completed"));
      expect((await replica.get(cancelled)).status).toBe("cancelled");
    }
    // Whoever waited through it has the result, or has been told to ask again.
    const reply = await waiting;
    if (reply.error === undefined) expect(reply.result.isError ?? false).toBe(false);
    else expect(reply.error).toMatchObject(UNAVAILABLE);
    await listen.note(taskId, ({ status }) => status === "completed");
    // What was refused left nothing behind, and nothing was started twice.
    expect(await site.query("SELECT 1 FROM tasks")).toHaveLength(2);
    for (const operation of ["start", "run"]) expect(calls(site.home, "engine", operation)).toHaveLength(2);
    expect([a!.lives, b!.lives]).toEqual([true, true]);
    for (const { stderr } of [a!, b!]) expect(stderr).not.toContain("postgres:postgres");
  });

  test("a start whose binding could not be written is found again", BOUND, async () => {
    const site = await Site.on(database);
    const a = await site.replica();
    hold(site.home, "engine", "hold-started");
    const taskId = await a.start("at_engine", { label: "unbound" });
    await until(() => expect(calls(site.home, "engine", "run")).toHaveLength(1));
    await database.stop();
    release(site.home, "engine", "hold-started");
    await until(() => expect(a.stderr).toContain("owed work could not be done"));
    await database.start();
    await until(async () => expect((await a.get(taskId))?.statusMessage).toBe("at it"));
    expect(calls(site.home, "engine", "run")).toHaveLength(1);
  });
});
