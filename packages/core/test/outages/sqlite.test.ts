/** A SQLite database that takes no writes for a while, under a server that serves. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import BetterSqlite3 from "better-sqlite3";
import { expect, onTestFinished, test, vi } from "vitest";
import { createTaskEngine } from "../../src/index.js";
import { sqliteStore } from "../../src/store/sqlite.js";
import { tempDir } from "../support/engines.js";
import { fixtureWorkflows } from "../support/fixture-workflows.mjs";
import { type Json, modernRequest } from "../support/raw-client.js";
import { calls, endRun, until } from "../support/server-process.js";
import { overHttp } from "../support/serving.js";

const BOUND = { timeout: 30_000 };
const LARGE = "x".repeat(300_000);

/** A server on a file, with the connection that its store uses and one of the test's own. */
async function serving(busyTimeoutMs = 5_000) {
  const home = await tempDir();
  const path = join(home, "tasks.db");
  const opened = vi.spyOn(BetterSqlite3.prototype, "pragma");
  const store = await sqliteStore({ path, busyTimeoutMs });
  const connection = opened.mock.contexts[0] as BetterSqlite3.Database;
  opened.mockRestore();
  const timing = { tickMs: 20, sweepMs: 20, startWaitMs: 150, readWaitMs: 100 };
  const engine = await createTaskEngine({ workflows: fixtureWorkflows(home) as Json, store, timing });
  onTestFinished(() => engine.close());
  const server = await overHttp(engine);
  const own = new BetterSqlite3(path);
  onTestFinished(() => void own.close());
  const request = (method: string, params: Json) => modernRequest(server.url, method, params);
  return {
    home,
    connection,
    own,
    request,
    call: (name: string, args: Json) => request("tools/call", { name, arguments: args }),
    get: async (taskId: string) => (await request("tasks/get", { taskId })).result,
    status: async (page: string) => (await fetch(new URL(page, server.url))).status,
    rows: (table: string) => own.prepare(`SELECT count(*) FROM ${table}`).pluck().get() as number,
  };
}

test(
  "a disk that is full: calls are refused in plain words, polls go on, and nothing is half-written",
  BOUND,
  async () => {
    const { connection, own, call, get, status, rows, home } = await serving();
    const { taskId } = (await call("at_engine", { label: "before" })).result;
    await until(async () => expect((await get(taskId)).statusMessage).toBe("at it"));
    const small = (await call("echo", { text: "small" })).result.taskId;
    await until(async () => expect((await get(small)).status).toBe("completed"));
    const before = { tasks: rows("tasks"), questions: rows("questions") };

    const most = connection.pragma("max_page_count", { simple: true });
    connection.pragma(`max_page_count = ${connection.pragma("page_count", { simple: true })}`);
    for (let i = 0; i < 3; i++) {
      const { error } = await call("echo", { text: LARGE });
      expect(error).toMatchObject({
        code: -32603,
        message: expect.stringMatching(/disk .* is full; try again/),
      });
      expect(error?.message).not.toContain(home);
    }
    expect((await get(taskId)).status).toBe("working");
    expect((await get(small)).result.structuredContent).toEqual({ text: "small" });
    expect([await status("/health"), await status("/ready")]).toEqual([200, 200]);
    expect({ tasks: rows("tasks"), questions: rows("questions") }).toEqual(before);
    expect(
      own
        .prepare("SELECT 1 FROM events WHERE (owner, taskId) NOT IN (SELECT owner, taskId FROM tasks)")
        .all(),
    ).toEqual([]);

    connection.pragma(`max_page_count = ${most}`);
    const after = (await call("echo", { text: LARGE })).result.taskId;
    await until(async () => expect((await get(after)).status).toBe("completed"));
    const [run] = calls(home, "engine", "run");
    endRun(home, "engine", run!.key);
    await until(async () => expect((await get(taskId)).status).toBe("completed"));
    expect(own.pragma("integrity_check", { simple: true })).toBe("ok");
  },
);

test(
  "a disk that fills up while a run ends: its result is stored when there is room again",
  BOUND,
  async () => {
    const { connection, call, get, own } = await serving();
    const gate = `${await tempDir()}/gate`;
    const { taskId } = (await call("waits", { gate })).result;
    await until(async () => expect((await get(taskId)).status).toBe("working"));
    const most = connection.pragma("max_page_count", { simple: true });
    // A trigger of the test writes more than fits whenever a task ends.
    own.exec(`CREATE TABLE ballast (x); CREATE TRIGGER heavy AFTER UPDATE ON tasks WHEN NEW.status = 'completed'
    BEGIN INSERT INTO ballast VALUES (zeroblob(300000)); END`);
    connection.pragma(`max_page_count = ${connection.pragma("page_count", { simple: true })}`);
    const refused = vi.spyOn(connection, "exec");
    writeFileSync(gate, "");
    await until(async () => {
      expect((await get(taskId)).status).toBe("working");
      expect(refused.mock.calls.filter(([sql]) => sql === "ROLLBACK").length).toBeGreaterThan(2);
    });
    connection.pragma(`max_page_count = ${most}`);
    await until(async () => expect((await get(taskId)).status).toBe("completed"));
    expect(own.prepare("SELECT count(*) FROM ballast").pluck().get()).toBe(1);
    expect(own.prepare("SELECT count(*) FROM events WHERE type = 'task.ended'").pluck().get()).toBe(1);
  },
);

test("a database that is locked for long: polls are answered, changes say to try again", BOUND, async () => {
  const { own, call, get, request, status, home } = await serving(200);
  const { taskId } = (await call("at_engine", { label: "before" })).result;
  await until(async () => expect((await get(taskId)).statusMessage).toBe("at it"));
  own.exec("BEGIN IMMEDIATE");
  const locked = { code: -32603, message: "The database is locked by another process; try again" };
  for (let i = 0; i < 3; i++) {
    expect((await call("echo", { text: "no" })).error).toMatchObject(locked);
    expect((await request("tasks/cancel", { taskId })).error).toMatchObject(locked);
    expect((await get(taskId)).status).toBe("working");
    expect([await status("/health"), await status("/ready")]).toEqual([200, 200]);
  }
  own.exec("COMMIT");
  expect((await request("tasks/cancel", { taskId })).error).toBeUndefined();
  await until(async () => expect((await get(taskId)).status).toBe("cancelled"));
  expect(calls(home, "engine", "start")).toHaveLength(1);
  expect(calls(home, "engine", "stop")).toHaveLength(1);
  expect((await call("echo", { text: "yes" })).result.taskId).toBeTypeOf("string");
});
