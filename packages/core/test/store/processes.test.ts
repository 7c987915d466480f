/** Several processes on one SQLite file: the normal case, since every stdio host starts its own server. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import BetterSqlite3 from "better-sqlite3";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { sqliteStore } from "../../src/store/sqlite.js";
import { CREATED, row } from "./rows.js";
import { storeProcess } from "./store-process.js";

async function freshPath(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "taskferry-processes-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return join(folder, "tasks.db");
}

async function open(path: string) {
  const store = await sqliteStore({ path, changePollMs: 10 });
  onTestFinished(() => store.close());
  return store;
}

describe("processes on one SQLite file", { timeout: 60_000 }, () => {
  test.each([1, 2, 3])("four that open a new file at the same moment migrate it once (%i)", async () => {
    const path = await freshPath();
    const processes = await Promise.all([1, 2, 3, 4].map(() => storeProcess("open", path)));
    for (const each of processes) each.go();
    await Promise.all(processes.map((each) => each.over));
    for (const { said } of processes) expect(said.at(-1)).toEqual({ done: true });
    const database = new BetterSqlite3(path, { readonly: true });
    onTestFinished(() => void database.close());
    expect(database.pragma("integrity_check", { simple: true })).toBe("ok");
    expect(database.prepare("SELECT name FROM meta").pluck().all()).toEqual(["schema", "secret"]);
  });

  test("every due task is leased once, whoever asks", async () => {
    const path = await freshPath();
    const store = await open(path);
    for (let i = 0; i < 150; i++) await store.insert(row({ dueAt: i }), CREATED);
    const processes = await Promise.all([1, 2, 3].map(() => storeProcess("lease", path)));
    for (const each of processes) each.go();
    await Promise.all(processes.map((each) => each.over));
    const leased = processes.flatMap(({ said }) => said.filter((one) => one.leased !== undefined));
    expect(leased).toHaveLength(150);
    expect(new Set(leased.map((one) => one.leased)).size).toBe(150);
    for (const { child, said } of processes) {
      expect(said.at(-1)).toEqual({ done: true });
      for (const one of said) if (one.leased !== undefined) expect(one.by).toBe(String(child.pid));
    }
  });

  test.each([2, 9, 30])(
    "one that is killed after %i steps leaves whole rows, and all it has told",
    async (steps) => {
      const path = await freshPath();
      const { child, said, go, over } = await storeProcess("write", path, row());
      go();
      await vi.waitUntil(() => said.length > steps, { timeout: 30_000, interval: 1 });
      child.kill("SIGKILL");
      await over;
      const store = await open(path);
      const tasks = await store.list("ann", { limit: 10_000 });
      const byId = new Map(tasks.map((task) => [task.taskId, task]));
      for (const { created } of said) if (created !== undefined) expect(byId.has(created)).toBe(true);
      for (const { ended } of said)
        if (ended !== undefined) expect(byId.get(ended)?.status).toBe("completed");
      for (const task of tasks) {
        const events = await store.events({ owner: "ann", taskId: task.taskId, limit: 10 });
        const questions = await store.questions("ann", task.taskId);
        const whole = [task.status, task.version, events.length, questions.length];
        expect([
          ["submitted", 1, 1, 0],
          ["completed", 2, 2, 1],
        ]).toContainEqual(whole);
      }
      // Nothing that the dead process held keeps others from writing.
      expect((await store.insert(row(), CREATED)).version).toBe(1);
    },
  );

  test("a change of another process is heard", async () => {
    const path = await freshPath();
    const store = await open(path);
    const heard: string[] = [];
    onTestFinished(store.onChange((owner, taskId) => heard.push(`${owner}/${taskId}`)));
    const other = await storeProcess("insert", path, row({ taskId: "theirs" }));
    other.go();
    await vi.waitUntil(() => heard.includes("ann/theirs"), { timeout: 20_000 });
    expect((await store.get("ann", "theirs"))?.taskId).toBe("theirs");
  });
});
