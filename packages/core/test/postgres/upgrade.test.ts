/** Releases with different schemas on one PostgreSQL, as while a deployment is rolled out. */
import { expect, test } from "vitest";
import { MIGRATIONS } from "../../src/store/migrations.js";
import { postgres } from "../store/databases.js";
import { calls, endRun, until } from "../support/server-process.js";
import { Site } from "./replica.js";

const database = postgres();
const BOUND = { timeout: 40_000 };

test(
  "a server goes on while a newer release migrates its database, and both serve all tasks",
  BOUND,
  async () => {
    const site = await Site.on(database);
    const present = await site.replica();
    const before = await present.start("at_engine", { label: "before" });
    const newer = await site.replica({ newer: true });
    expect(await site.query("SELECT value FROM meta WHERE name = 'schema'")).toEqual([
      { value: `${MIGRATIONS.length + 1}` },
    ]);
    const [byPresent, byNewer] = [
      await present.start("at_engine", { label: "by the present" }),
      await newer.start("at_engine", { label: "by the newer" }),
    ];
    const all = [before, byPresent, byNewer];
    for (const replica of [present, newer])
      await until(async () => {
        for (const taskId of all)
          expect(await replica.get(taskId)).toMatchObject({
            taskId,
            status: "working",
            statusMessage: "at it",
          });
      });
    // What the newer one keeps beside is not told by the present one, and not lost by it.
    expect(await present.get(byNewer)).not.toHaveProperty("note");
    await site.query(`UPDATE tasks SET note = 'kept' WHERE "taskId" = $1`, [byNewer]);
    await present.request("tasks/cancel", { taskId: byPresent });
    await newer.request("tasks/cancel", { taskId: before });
    for (const { key } of calls(site.home, "engine", "run")) endRun(site.home, "engine", key);
    for (const replica of [present, newer])
      await until(async () => {
        expect((await replica.get(byNewer)).status).toBe("completed");
        for (const taskId of all)
          expect(["completed", "cancelled"]).toContain((await replica.get(taskId)).status);
      });
    expect(await site.query(`SELECT note FROM tasks WHERE "taskId" = $1`, [byNewer])).toEqual([
      { note: "kept" },
    ]);
    expect(present.lives).toBe(true);
  },
);

test(
  "an older release refuses a database that a newer one has migrated, and says what to do",
  BOUND,
  async () => {
    const site = await Site.on(database);
    const newer = await site.replica({ newer: true });
    const older = site.spawn();
    await until(() => expect(older.lives).toBe(false));
    expect(older.child.exitCode).not.toBe(0);
    expect(older.stderr).toContain(
      `The database has schema version ${MIGRATIONS.length + 1}, this release knows ${MIGRATIONS.length}`,
    );
    expect(older.stderr).toContain("use a newer release");
    expect(await newer.status("/ready")).toBe(200);
  },
);

test("two servers that start at once migrate a new database once", BOUND, async () => {
  const site = await Site.on(database);
  const [first, second] = await site.replicas(2, { newer: true });
  const taskId = await first!.start("echo", { text: "there" });
  await until(async () => expect((await second!.get(taskId)).status).toBe("completed"));
});
