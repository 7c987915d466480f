/** Opening databases that cannot be used: each says what is wrong and what to do. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, open, rm, stat, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import BetterSqlite3 from "better-sqlite3";
import pg from "pg";
import { describe, expect, onTestFinished, test } from "vitest";
import { postgresStore } from "../../src/store/postgres.js";
import { sqliteStore } from "../../src/store/sqlite.js";
import { postgres } from "./databases.js";
import { CREATED, row } from "./rows.js";
import { storeProcess } from "./store-process.js";

const require = createRequire(import.meta.url);

async function folder(): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), "taskferry-open-"));
  onTestFinished(() => rm(made, { recursive: true, force: true }));
  return made;
}

describe("SQLite", { timeout: 30_000 }, () => {
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

  test.each([
    ["an empty path", { path: "" }],
    ["no path", {}],
  ])("%s", async (_what, options) => {
    await expect(sqliteStore(options as { path: string })).rejects.toMatchObject({
      code: "configuration",
      message: expect.stringContaining("path of its database file"),
    });
  });

  test("a file that is no database", async () => {
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

  test.each(["overwritten", "cut short"])("a database that is damaged: %s", async (damage) => {
    const path = join(await folder(), "tasks.db");
    const store = await sqliteStore({ path });
    for (let i = 0; i < 50; i++) await store.insert(row(), CREATED);
    await store.close();
    const { size } = await stat(path);
    const file = await open(path, "r+");
    // The header stays whole: it is still a database by its looks.
    if (damage === "overwritten") await file.write(Buffer.alloc(size - 4096, 0x5a), 0, size - 4096, 4096);
    else await file.truncate(4096);
    await file.close();
    await expect(sqliteStore({ path })).rejects.toMatchObject({
      code: "configuration",
      message: expect.stringContaining("damaged"),
    });
  });

  test("a database that is damaged while it is open: said to clients, without its path", async () => {
    const path = join(await folder(), "tasks.db");
    const filled = await sqliteStore({ path });
    for (let i = 0; i < 50; i++) await filled.insert(row(), CREATED);
    await filled.close();
    const store = await sqliteStore({ path });
    onTestFinished(() => store.close());
    const { size } = await stat(path);
    const file = await open(path, "r+");
    // All but the pages that the opening has read.
    await file.write(Buffer.alloc(size - 8192, 0x5a), 0, size - 8192, 8192);
    await file.close();
    const refusal = await store.list("ann", { limit: 50 }).then(
      () => undefined,
      (error: Error) => error,
    );
    expect(refusal).toMatchObject({ code: "configuration", message: expect.stringContaining("damaged") });
    expect(refusal?.message).not.toContain(path);
  });

  test.each(["with a database", "without one"])("a folder that may only be read, %s", async (what) => {
    const made = await folder();
    const path = join(made, "tasks.db");
    if (what === "with a database") {
      await (await sqliteStore({ path })).close();
      await chmod(path, 0o444);
    }
    await chmod(made, 0o555);
    onTestFinished(() => chmod(made, 0o755));
    // The superuser may write anywhere: it becomes nobody.
    const nobody = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
    const opener = await storeProcess("open", path, undefined, nobody);
    opener.go();
    await opener.over;
    expect(opener.said.at(-1)).toMatchObject({
      error: "configuration",
      message: expect.stringContaining("cannot be opened for writing"),
    });
  });

  test("a database of an earlier release, which made its secret when it was first asked for", async () => {
    const path = join(await folder(), "tasks.db");
    await (await sqliteStore({ path })).close();
    const database = new BetterSqlite3(path);
    database.prepare("DELETE FROM meta WHERE name = 'secret'").run();
    database.close();
    const stores = [await sqliteStore({ path }), await sqliteStore({ path })];
    const secrets = await Promise.all(stores.map((store) => store.secret()));
    expect(secrets[0]).toHaveLength(32);
    expect(secrets[1]).toEqual(secrets[0]);
    for (const store of stores) await store.close();
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

  test("a new file that another one is just making: waited for", async () => {
    const path = join(await folder(), "tasks.db");
    const maker = new BetterSqlite3(path);
    onTestFinished(() => void maker.close());
    maker.exec("CREATE TABLE theirs (x)");
    maker.exec("BEGIN EXCLUSIVE");
    const opening = sqliteStore({ path });
    await setImmediate();
    maker.exec("COMMIT");
    const store = await opening;
    onTestFinished(() => store.close());
    expect((await store.insert(row(), CREATED)).version).toBe(1);
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

describe("PostgreSQL", { timeout: 30_000 }, () => {
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

  test("a database that does not exist", async () => {
    const { url } = await database.create();
    const connectionString = url.replace(/\/[^/]*$/, "/not_there");
    await expect(postgresStore({ connectionString })).rejects.toMatchObject({
      code: "configuration",
      message: expect.stringContaining("does not exist"),
    });
  });

  test("a schema from a newer release", async () => {
    const { open, schema, url } = await database.create();
    await (await open()).close();
    const client = await connect(url);
    await client.query(`UPDATE ${schema}.meta SET value = '99' WHERE name = 'schema'`);
    await expect(open()).rejects.toMatchObject({
      code: "configuration",
      message: expect.stringContaining("schema version 99"),
    });
  });

  test("a user who may use the tables, but not make any", async () => {
    const { open, schema, url } = await database.create();
    await (await open()).close();
    const client = await connect(url);
    const user = `user_${schema}`;
    await client.query(`CREATE ROLE ${user} LOGIN PASSWORD 'secret'`);
    onTestFinished(async () => {
      await client.query(`DROP OWNED BY ${user}; DROP ROLE ${user}`);
    });
    await client.query(`GRANT USAGE ON SCHEMA ${schema} TO ${user}`);
    await client.query(`GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${schema} TO ${user}`);
    const as = new URL(url);
    as.username = user;
    as.password = "secret";
    const store = await postgresStore({ connectionString: as.href, schema });
    expect((await store.insert(row(), CREATED)).version).toBe(1);
    await store.close();
    const elsewhere = postgresStore({ connectionString: as.href, schema: `${schema}_new` });
    await expect(elsewhere).rejects.toMatchObject({ code: "configuration" });
  });

  test("a pool of one's own is used as it is, and not ended", async () => {
    const { schema, url } = await database.create();
    const pool = new pg.Pool({ connectionString: url, max: 2 });
    onTestFinished(() => pool.end());
    const store = await postgresStore({ pool, schema });
    const task = await store.insert(row({ dueAt: 5 }), CREATED);
    expect(await store.get(task.owner, task.taskId)).toEqual(task);
    expect((await store.events({ limit: 1 }))[0]?.seq).toBeTypeOf("number");
    await store.close();
    expect((await pool.query("SELECT 1 AS one")).rows).toEqual([{ one: 1 }]);
    const tooSmall = new pg.Pool({ connectionString: url, max: 1 });
    onTestFinished(() => tooSmall.end());
    await expect(postgresStore({ pool: tooSmall })).rejects.toMatchObject({ code: "configuration" });
    await expect(postgresStore({})).rejects.toMatchObject({ code: "configuration" });
  });
});

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client(url);
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}
