/** Whether it matters how many tasks are stored. */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { createTaskEngine, defineWorkflow, LOCAL_OWNER } from "@taskferry/core";
import { sqliteStore } from "@taskferry/core/sqlite";
import BetterSqlite3 from "better-sqlite3";
import { UNLIMITED } from "./engine.js";
import { fakeEngine } from "./fake.js";
import { report } from "./table.js";

export async function benchSize(folder: string, sizes: readonly number[]): Promise<void> {
  const path = join(folder, "size.db");
  const workflows = [defineWorkflow({ name: "flow", adapter: fakeEngine().adapter, pollMs: 3_600_000 })];
  const timing = { tickMs: 3_600_000, sweepMs: 3_600_000, slowestReadMs: 3_600_000 };
  let smallest: Record<string, number> | undefined;
  let stored = 0;
  for (const size of sizes) {
    const store = await sqliteStore({ path, synchronous: "NORMAL" });
    const engine = await createTaskEngine({ store, workflows, timing, limits: UNLIMITED });
    const create = () =>
      engine.create({ owner: LOCAL_OWNER, generation: "2026-07-28", workflow: "flow", arguments: {} });
    const seed = (await create()).task.taskId;
    fill(path, seed, stored, size);
    stored = size;
    const median = async (times: number, operation: (i: number) => Promise<unknown>) => {
      const taken: number[] = [];
      // As many before that are not counted, on other tasks: a program that has just started is slow at any size.
      for (let i = times; i < times * 2; i++) await operation(i);
      for (let i = 0; i < times; i++) {
        const started = performance.now();
        await operation(i);
        taken.push(performance.now() - started);
      }
      return taken.sort((a, b) => a - b)[Math.floor(times / 2)] ?? 0;
    };
    const reader = new BetterSqlite3(path, { readonly: true });
    const select = reader.prepare("SELECT * FROM tasks WHERE owner = 'local' AND taskId = ?");
    const now: Record<string, number> = {
      // What a large file costs by itself: from here on, both grow alike.
      "raw better-sqlite3 get": await median(2_000, async (i) => select.get(`filler-${(i * 7907) % size}`)),
      get: await median(2_000, (i) => engine.get(LOCAL_OWNER, `filler-${(i * 7919) % size}`)),
      create: await median(200, create),
      "list page": await median(50, () => engine.list(LOCAL_OWNER, undefined)),
      sweep: await median(20, () =>
        store.sweep({ now: 1, limit: 500, tombstonesBefore: 0, eventsBefore: 0 }),
      ),
    };
    reader.close();
    await engine.close();
    for (const [what, ms] of Object.entries(now)) {
      const first = smallest?.[what];
      report({
        what: `${what} at ${size.toLocaleString("en-US")} stored tasks`,
        value: `${(ms * 1000).toFixed(0)} µs`,
        ...(first !== undefined && {
          baseline: `${(first * 1000).toFixed(0)} µs at ${(sizes[0] ?? 0).toLocaleString("en-US")}`,
          ratio: ms / first,
        }),
        ...(first !== undefined && what === "get" && { aim: { atMost: 1.2 } }),
      });
    }
    smallest ??= now;
  }
  await rm(path, { force: true });
}

/** Copies a task until there are enough. */
function fill(path: string, seed: string, from: number, to: number): void {
  const database = new BetterSqlite3(path);
  database.pragma("synchronous = OFF");
  const row = database.prepare("SELECT * FROM tasks WHERE taskId = ?").get(seed) as Record<string, unknown>;
  const names = Object.keys(row);
  const insert = database.prepare(
    `INSERT INTO tasks (${names.map((name) => `"${name}"`).join()}) VALUES (${names.map((name) => `@${name}`).join()})`,
  );
  database.transaction(() => {
    for (let i = from; i < to; i++) {
      // Ended, like almost all tasks that are stored.
      const ended = {
        status: "completed",
        outcome: '{"kind":"result","result":{"content":[]}}',
        endedAt: 1,
        expiresAt: 9e14,
        dueAt: null,
      };
      insert.run({
        ...row,
        ...ended,
        taskId: `filler-${i}`,
        startKey: `filler-${i}`,
        createdAt: i,
        runRef: null,
      });
    }
  })();
  database.exec("ANALYZE");
  database.close();
}
