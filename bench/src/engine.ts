/** The engine against raw better-sqlite3 that does the same durable work on the same disk. */
import { randomUUID } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { createTaskEngine, defineWorkflow, LOCAL_OWNER } from "@taskferry/core";
import { sqliteStore } from "@taskferry/core/sqlite";
import BetterSqlite3 from "better-sqlite3";
import { fakeEngine } from "./fake.js";
import { perSecond, rate, report } from "./table.js";

/** Limits that are never hit. */
export const UNLIMITED = {
  createPerMinute: 1e9,
  getPerMinute: 1e9,
  resultPerMinute: 1e9,
  listPerMinute: 1e9,
  concurrentTasks: 1e9,
  blockedRequests: 1e9,
};

export async function benchEngine(folder: string, forMs: number): Promise<void> {
  const engine = await createTaskEngine({
    store: await sqliteStore({ path: join(folder, "engine.db") }),
    workflows: [defineWorkflow({ name: "flow", adapter: fakeEngine().adapter, pollMs: 3_600_000 })],
    limits: UNLIMITED,
    // Nothing but the calls that are measured.
    timing: { tickMs: 3_600_000, slowestReadMs: 3_600_000 },
  });
  const create = () =>
    engine.create({ owner: LOCAL_OWNER, generation: "2026-07-28", workflow: "flow", arguments: {} });
  const { taskId } = (await create()).task;
  await engine.get(LOCAL_OWNER, taskId);
  const raw = await rawWork(folder, taskId);

  // In turns, so that a slow moment of the machine meets both.
  const rounds = 3;
  const sums = { rawGet: 0, get: 0, rawCreate: 0, create: 0 };
  for (let round = 0; round < rounds; round++) {
    sums.rawGet += await rate(forMs / rounds, () => raw.get(taskId));
    sums.get += await rate(forMs / rounds, () => engine.get(LOCAL_OWNER, taskId));
    sums.rawCreate += await rate(forMs / rounds, () => raw.create());
    sums.create += await rate(forMs / rounds, create);
  }
  report({
    what: "get through the engine",
    value: perSecond(sums.get / rounds),
    baseline: `${perSecond(sums.rawGet / rounds)} raw better-sqlite3`,
    ratio: sums.get / sums.rawGet,
    aim: { atLeast: 0.25 },
  });
  report({
    what: "durable create through the engine",
    value: perSecond(sums.create / rounds),
    baseline: `${perSecond(sums.rawCreate / rounds)} raw, same rows and indexes`,
    ratio: sums.create / sums.rawCreate,
    aim: { atLeast: 0.7 },
  });
  await engine.close();
  raw.close();
  await Promise.all(["raw.db", "engine.db"].map((file) => rm(join(folder, file), { force: true })));
}

/** The same rows, indexes and commits as the engine's, by hand: two durable transactions for a create. */
async function rawWork(folder: string, taskId: string) {
  const path = join(folder, "raw.db");
  await (await sqliteStore({ path })).close();
  const database = new BetterSqlite3(path);
  database.pragma("synchronous = FULL");
  const engine = new BetterSqlite3(join(folder, "engine.db"), { readonly: true });
  const row = engine.prepare("SELECT * FROM tasks WHERE taskId = ?").get(taskId) as Record<string, unknown>;
  engine.close();
  const names = Object.keys(row);
  const insert = database.prepare(
    `INSERT INTO tasks (${names.map((name) => `"${name}"`).join()}) VALUES (${names.map((name) => `@${name}`).join()})`,
  );
  const update = database.prepare(
    `UPDATE tasks SET startPhase = 'bound', runRef = ?, boundAt = 1, dueAt = 2, leaseHolder = NULL, version = 2
     WHERE owner = 'local' AND taskId = ? AND version = 1`,
  );
  const event = database.prepare(
    `INSERT INTO events (at, owner, taskId, type, detail) VALUES (1, 'local', ?, 'x', NULL)`,
  );
  const select = database.prepare("SELECT * FROM tasks WHERE owner = 'local' AND taskId = ?");
  const write = database.transaction((id: string) => {
    insert.run({ ...row, taskId: id, startKey: id, version: 1, runRef: null });
    event.run(id);
    event.run(id);
  });
  const bind = database.transaction((id: string) => {
    update.run(id, id);
    event.run(id);
  });
  write(taskId);
  return {
    get: (id: string) => select.get(id),
    create() {
      // Random, as tasks' ids must be: ids in order would all land on the same page of the index.
      const id = randomUUID();
      write.immediate(id);
      bind.immediate(id);
    },
    close: () => database.close(),
  };
}
