/** The databases that the store's tests run against: a SQLite file, and a real PostgreSQL. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, onTestFinished, TestRunner } from "vitest";
import { postgresStore } from "../../src/store/postgres.js";
import { sqliteStore } from "../../src/store/sqlite.js";
import type { TaskStore } from "../../src/store/task-store.js";
import { embeddedPostgres } from "../support/embedded-postgres.js";

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

/** A store on a fresh database, and what opens more of them on it. All are closed with the test. */
export async function freshStore(
  database: TestDatabase,
): Promise<{ store: TaskStore; open(): Promise<TaskStore> }> {
  const made = await database.create();
  const open = async () => {
    const store = await made.open();
    onTestFinished(() => store.close());
    return store;
  };
  return { store: await open(), open };
}

async function startPostgres(): Promise<{ url: string; stop(): Promise<void> }> {
  const { server, url, folder } = await embeddedPostgres({ persistent: false, maxConnections: 200 });
  await server.initialise();
  await server.start();
  return {
    url,
    async stop() {
      await server.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
