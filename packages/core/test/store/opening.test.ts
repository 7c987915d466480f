/** Opening databases that cannot be used: each says what is wrong and what to do. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import BetterSqlite3 from "better-sqlite3";
import { describe, expect, onTestFinished, test } from "vitest";
import { postgresStore } from "../../src/store/postgres.js";
import { sqliteStore } from "../../src/store/sqlite.js";
import { postgres } from "./databases.js";
import { CREATED, row } from "./rows.js";

const require = createRequire(import.meta.url);

async function folder(): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), "taskferry-open-"));
  onTestFinished(() => rm(made, { recursive: true, force: true }));
  return made;
}

describe("SQLite", () => {
  test("a folder that is not there", async () => {
    const path = join(await folder(), "no", "tasks.db");
    await expect(sqliteStore({ path })).rejects.toMatchObject({
      code: "configuration",
      message: expect.stringContaining("folder"),
    });
  });

  test("a folder in its place", async () => {
    const path = join(await folder(), "tasks.db");
    await mkdir(path);
    await expect(sqliteStore({ path })).rejects.toMatchObject({ code: "configuration" });
  });

  test("a file that is no database, and one that is damaged", async () => {
    const path = join(await folder(), "tasks.db");
    await writeFile(
      path,
      "this is a letter, not a database, and it is long enough to be looked at as one".repeat(20),
    );
    await expect(sqliteStore({ path })).rejects.toMatchObject({
      code: "configuration",
      message: expect.stringContaining("not a SQLite database"),
    });
  });

  test("a database from a newer release", async () => {
    const path = join(await folder(), "tasks.db");
    await (await sqliteStore({ path })).close();
    const database = new BetterSqlite3(path);
    database.prepare("UPDATE meta SET value = '99' WHERE name = 'schema'").run();
    database.close();
    await expect(sqliteStore({ path })).rejects.toMatchObject({
      code: "configuration",
      message: expect.stringContaining("schema version 99"),
    });
  });

  test("a database that another process holds: told as such, and usable once it is free", async () => {
    const path = join(await folder(), "tasks.db");
    const store = await sqliteStore({ path, busyTimeoutMs: 200 });
    onTestFinished(() => store.close());
    const script = `
      const database = new (require(${JSON.stringify(require.resolve("better-sqlite3"))}))(process.argv[1]);
      database.exec("BEGIN IMMEDIATE");
      console.log("held");
      process.stdin.on("data", () => { database.exec("COMMIT"); console.log("free"); });
    `;
    const holder = spawn(process.execPath, ["-e", script, path], { stdio: ["pipe", "pipe", "inherit"] });
    onTestFinished(() => void holder.kill());
    await once(holder.stdout, "data");
    await expect(store.insert(row(), CREATED)).rejects.toMatchObject({
      code: "store_unavailable",
      retryable: true,
    });
    holder.stdin.write("\n");
    await once(holder.stdout, "data");
    expect((await store.insert(row(), CREATED)).version).toBe(1);
  });
});

describe("PostgreSQL", () => {
  const database = postgres();

  test("a server that is not there", async () => {
    await expect(postgresStore({ connectionString: "postgres://a:b@127.0.0.1:1/x" })).rejects.toMatchObject({
      code: "store_unavailable",
      message: expect.not.stringContaining("a:b"),
    });
  });

  test("a schema name that is none", async () => {
    const connectionString = "postgres://a:b@127.0.0.1:1/x";
    await expect(postgresStore({ connectionString, schema: 'x"; DROP' })).rejects.toMatchObject({
      code: "configuration",
    });
  });

  test("two stores in two schemas do not see each other", async () => {
    const [one, two] = await Promise.all([database.create(), database.create()]);
    const [a, b] = await Promise.all([one.open(), two.open()]);
    onTestFinished(() => Promise.all([a.close(), b.close()]).then(() => {}));
    const task = await a.insert(row(), CREATED);
    expect(await b.get(task.owner, task.taskId)).toBeUndefined();
  });
});
