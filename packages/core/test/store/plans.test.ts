/** What the store really sends, explained: no query walks through the tasks, so that none slows down with their number. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import BetterSqlite3 from "better-sqlite3";
import pg from "pg";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { sqliteStore } from "../../src/store/sqlite.js";
import type { TaskStore } from "../../src/store/task-store.js";
import { postgres } from "./databases.js";
import { CREATED, row } from "./rows.js";

/** Everything but `countByStatus`, which counts all rows: for metrics, and not often. */
async function useAll(store: TaskStore): Promise<void> {
  const lease = { holder: "h", now: 1000, until: 2000 };
  const task = await store.insert(
    row({ dueAt: 1, connection: "c", requestId: "1", idempotencyKey: "k", runRef: "r" }),
    CREATED,
  );
  const { owner, taskId } = task;
  await store.get(owner, taskId);
  await store.findByIdempotencyKey(owner, "k");
  await store.findByRequest(owner, "c", "1");
  await store.findByRun("fake", '"r"');
  await store.isClaimed("fake", "claim", task);
  await store.list(owner, { limit: 50 });
  await store.list(owner, { limit: 50, after: task });
  await store.countActive(owner, 9);
  await store.leaseDue({ ...lease, workflows: ["flow", "other"], limit: 10 });
  await store.nextDue(["flow", "other"]);
  await store.lease(owner, taskId, lease);
  await store.renewLease(owner, taskId, lease);
  await store.releaseLease(owner, taskId, "h");
  const asked = await store.update(
    task,
    { claim: "claim" },
    { questions: { open: [{ key: "q", message: "?" }] } },
  );
  await store.leaseQuestion(owner, taskId, "q", lease);
  await store.releaseQuestion(owner, taskId, "q", "h");
  await store.questions(owner, taskId);
  await store.update(asked, { status: "completed", endedAt: 1, expiresAt: 2 }, { release: "h" });
  await store.events({ after: 5, limit: 10 });
  await store.sweep({ now: 5, limit: 500, tombstonesBefore: 9, eventsBefore: 9 });
  await store.tombstone(owner, taskId);
  await store.remove(owner, taskId, "deleted", 1, { type: "task.deleted" });
}

/** What plans are about; `INSERT`s have none worth reading. */
const isQuery = (sql: string) => /^(select|update|delete)\b/.test(sql) && !sql.includes("meta");

describe("SQLite", { timeout: 60_000 }, () => {
  test("no query scans a table, or sorts tasks", async () => {
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
    const folder = await mkdtemp(join(tmpdir(), "taskferry-plans-"));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const path = join(folder, "tasks.db");
    const store = await sqliteStore({ path });
    await useAll(store);
    await store.close();
    spy.mockRestore();

    const database = new BetterSqlite3(path);
    onTestFinished(() => void database.close());
    const queries = [...sent].filter(isQuery);
    expect(queries.length).toBeGreaterThan(20);
    for (const sql of queries) {
      const nothing = Array.from({ length: sql.split("?").length - 1 }, () => null);
      const steps = database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...nothing) as { detail: string }[];
      const plan = steps.map((step) => step.detail).join("; ");
      // Ends of the log are read from the end itself: a scan that stops at the first row, or at the first one to keep.
      if (/from "events"/.test(sql) && /order by "seq"( desc)? limit/.test(sql)) continue;
      expect(plan, sql).not.toMatch(/SCAN (tasks|questions|events|tombstones)/);
      if (sql.includes('"dueAt"')) expect(plan, sql).toMatch(/tasks_due \(workflow=\?|\(owner=\?/);
      // The questions of one task are few.
      if (!sql.includes('from "questions"')) expect(plan, sql).not.toContain("TEMP B-TREE");
    }
  });
});

describe("PostgreSQL", { timeout: 60_000 }, () => {
  const database = postgres();

  test("no query scans the tasks", async () => {
    const { open, schema, url } = await database.create();
    const sent = new Set<string>();
    const query = pg.Client.prototype.query as (...args: unknown[]) => unknown;
    const spy = vi.spyOn(pg.Client.prototype, "query").mockImplementation(function (
      this: pg.Client,
      ...args: unknown[]
    ) {
      const [first] = args as [string | { readonly text: string }];
      sent.add(typeof first === "string" ? first : first.text);
      return query.apply(this, args) as never;
    } as never);
    onTestFinished(() => spy.mockRestore());
    const store = await open();
    onTestFinished(() => store.close());
    await useAll(store);
    spy.mockRestore();

    const client = new pg.Client({ connectionString: url, options: `-c search_path=${schema}` });
    await client.connect();
    onTestFinished(() => client.end());
    await store.insert(row({ taskId: "seed", owner: "seed" }), CREATED);
    await fill(client, 20_000);
    const queries = [...sent].filter((sql) => isQuery(sql) && sql.includes('"tasks"'));
    expect(queries.length).toBeGreaterThan(12);
    for (const sql of queries) {
      const explained = await client.query(`EXPLAIN (GENERIC_PLAN) ${sql}`);
      const plan = explained.rows.map((line) => line["QUERY PLAN"]).join("\n");
      expect(plan, `${sql}\n${plan}`).not.toContain("Seq Scan on tasks");
    }
  });
});

/** Many copies of the one row, of many owners, some of them due. */
async function fill(client: pg.Client, count: number): Promise<void> {
  const { rows } = await client.query(
    "SELECT column_name AS name FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = 'tasks'",
  );
  const different: Readonly<Record<string, string>> = {
    owner: "'owner' || (i % 100)",
    taskId: "'task' || i",
    workflow: "'flow' || (i % 7)",
    createdAt: "i",
    dueAt: "CASE WHEN i % 2 = 0 THEN i END",
    endedAt: "CASE WHEN i % 2 = 1 THEN i END",
    expiresAt: "CASE WHEN i % 2 = 1 THEN i END",
    claim: "'claim' || i",
    runRef: "'\"run' || i || '\"'",
    idempotencyKey: "'key' || i",
    connection: "'connection' || (i % 500)",
    requestId: "i",
  };
  const names = rows.map((column) => column.name as string);
  await client.query(
    `INSERT INTO tasks (${names.map((name) => `"${name}"`).join()})
     SELECT ${names.map((name) => different[name] ?? `"${name}"`).join()} FROM tasks, generate_series(1, ${count}) AS i`,
  );
  await client.query("ANALYZE tasks");
}
