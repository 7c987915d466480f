/**
 * A process of its own on a SQLite file, as every stdio host makes one. Waits for a line, opens the file, and does what
 * its first argument says until that is done or it is killed. Says what has happened, one JSON text a line.
 */
import { once } from "node:events";
import { sqliteStore } from "../../dist/store/sqlite.js";

const [work, path, row] = process.argv.slice(2);
const say = (what) => process.stdout.write(`${JSON.stringify(what)}\n`);

const WORK = {
  async open() {},

  async lease(store) {
    const request = { holder: String(process.pid), now: 1000, until: 2_000_000_000_000 };
    for (;;) {
      const tasks = await store.leaseDue({ ...request, workflows: ["flow"], limit: 3 });
      if (tasks.length === 0) return;
      for (const task of tasks) say({ leased: task.taskId, by: task.leaseHolder });
    }
  },

  async write(store) {
    for (let i = 0; ; i++) {
      const made = { ...JSON.parse(row), taskId: `task-${i}` };
      const task = await store.insert(made, [{ type: "task.created" }]);
      say({ created: task.taskId });
      const end = { status: "completed", outcome: { kind: "cancelled" }, endedAt: 1 };
      const questions = { open: [{ key: "q", message: "?" }] };
      await store.update(task, end, { questions, events: [{ type: "task.status" }] });
      say({ ended: task.taskId });
    }
  },

  async insert(store) {
    await store.insert(JSON.parse(row), [{ type: "task.created" }]);
  },
};

say({ ready: process.pid });
await once(process.stdin, "data");
process.stdin.unref();
try {
  const store = await sqliteStore({ path });
  await WORK[work](store);
  await store.close();
  say({ done: true });
} catch (error) {
  say({ error: error.code, message: error.message });
}
