/** No change goes unheard: not in a burst, not when it commits late, not when a connection breaks. */
import pg from "pg";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { postgresStore } from "../../src/store/postgres.js";
import type { TaskStore } from "../../src/store/task-store.js";
import { databases, postgres } from "./databases.js";
import { CREATED, row } from "./rows.js";

function listen(store: TaskStore): Set<string> {
  const heard = new Set<string>();
  onTestFinished(store.onChange((_owner, taskId) => heard.add(taskId)));
  return heard;
}

const NEWS = [{ type: "news" }];
const hears = (heard: Set<string>, taskId: string) =>
  vi.waitUntil(() => heard.has(taskId), { timeout: 10_000 });

for (const database of databases()) {
  const pair = async () => {
    const made = await database.create();
    const stores = await Promise.all([made.open(), made.open()]);
    onTestFinished(() => Promise.all(stores.map((store) => store.close())).then(() => {}));
    return stores as [TaskStore, TaskStore];
  };

  describe(`${database.name}: changes`, { timeout: 30_000 }, () => {
    test("thousands of events at once are all heard", async () => {
      const [store, other] = await pair();
      const heard = listen(other);
      await store.record("ann", "first", NEWS, 1);
      await hears(heard, "first");
      // One transaction: there is no later change to wake the listener again.
      const many = Array.from({ length: 2_500 }, () => ({ type: "news" }));
      await store.record("ann", "many", many, 1);
      await store.record("ann", "last", NEWS, 1);
      await hears(heard, "last");
      expect(heard.has("many")).toBe(true);
    });

    test("a listener that throws does not make a committed change fail", async () => {
      const [store] = await pair();
      const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
      onTestFinished(() => warned.mockRestore());
      const mistake = new Error("a listener of the test throws");
      onTestFinished(
        store.onChange(() => {
          throw mistake;
        }),
      );
      const heard = listen(store);
      const task = await store.insert(row(), CREATED);
      expect(heard.has(task.taskId)).toBe(true);
      expect(warned).toHaveBeenCalledWith(mistake);
    });

    test("a swept task is told of", async () => {
      const [store] = await pair();
      await store.insert(row({ taskId: "old", status: "cancelled", endedAt: 1, expiresAt: 2 }), CREATED);
      const heard = listen(store);
      await store.sweep({ now: 3, limit: 10, tombstonesBefore: 0, eventsBefore: 0 });
      expect(heard.has("old")).toBe(true);
    });

    test("nobody listens to a closed store", async () => {
      const [store] = await pair();
      await store.close();
      expect(() => store.onChange(() => {})).toThrow(expect.objectContaining({ code: "closed" }));
    });

    test("what was begun before the closing is done", async () => {
      const [store, other] = await pair();
      const ids = Array.from({ length: 20 }, (_, i) => `t${i}`);
      const writes = ids.map((taskId) => store.insert(row({ taskId }), CREATED));
      await store.close();
      for (const task of await Promise.all(writes))
        expect(await other.get("ann", task.taskId)).toMatchObject({ version: 1 });
    });
  });
}

describe("PostgreSQL: changes", { timeout: 30_000 }, () => {
  const database = postgres();

  test("one that commits after hundreds of later ones is heard", async () => {
    const { open, schema, url } = await database.create();
    const [store, other] = await Promise.all([open(), open()]);
    onTestFinished(() => Promise.all([store.close(), other.close()]).then(() => {}));
    const heard = listen(other);
    await store.record("ann", "first", NEWS, 1);
    await hears(heard, "first");

    const slow = new pg.Client(url);
    await slow.connect();
    onTestFinished(() => slow.end());
    await slow.query("BEGIN");
    const late = "INSERT INTO SCHEMA.events (at, owner, \"taskId\", type) VALUES (1, 'ann', 'late', 'news')";
    await slow.query(late.replace("SCHEMA", schema));
    await store.record(
      "ann",
      "later",
      Array.from({ length: 300 }, () => ({ type: "news" })),
      1,
    );
    await store.record("ann", "latest", NEWS, 1);
    await hears(heard, "latest");
    expect(heard.has("late")).toBe(false);
    await slow.query("COMMIT");
    await hears(heard, "late");
  });

  test("what happens while the listening connection is broken is heard", async () => {
    const { open, schema, url } = await database.create();
    const pool = new pg.Pool({ connectionString: url, max: 3, application_name: schema });
    pool.on("error", () => {});
    const [store, other] = await Promise.all([open(), postgresStore({ pool, schema })]);
    onTestFinished(async () => {
      await Promise.all([store.close(), other.close()]);
      await pool.end();
    });
    const heard = listen(other);
    await store.record("ann", "first", NEWS, 1);
    await hears(heard, "first");

    const admin = new pg.Client(url);
    await admin.connect();
    onTestFinished(() => admin.end());
    const killed = await admin.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1",
      [schema],
    );
    expect(killed.rowCount).toBeGreaterThan(0);
    await store.record("ann", "meanwhile", NEWS, 1);
    await hears(heard, "meanwhile");
  });
});
