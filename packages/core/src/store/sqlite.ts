/** SQLite through better-sqlite3: the embedded default. Several processes on one file are the normal case. */
import { accessSync, constants, realpathSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import BetterSqlite3 from "better-sqlite3";
import type { CompiledQuery } from "kysely";
import { WorkflowError } from "../contract/errors.js";
import type { Database, Executor, Violation } from "./database.js";
import { KyselyTaskStore } from "./kysely-store.js";
import {
  checkVersion,
  type DialectWords,
  ENDED_MESSAGE,
  ENDED_ROW,
  MIGRATIONS,
  newSecret,
} from "./migrations.js";
import { queryBuilder } from "./query-builder.js";
import type { TaskStore } from "./task-store.js";

export interface SqliteStoreOptions {
  /** The database file, made if it is not there; `":memory:"` for one that lives and dies with this process. */
  readonly path: string;
  /** How long a write waits for another process's, in milliseconds. @default 5000 */
  readonly busyTimeoutMs?: number;
  /** How often changes of other processes are looked for while somebody waits, in milliseconds. @default 100 */
  readonly changePollMs?: number;
  /**
   * `FULL` survives a power cut at every commit, as "durable before told" wants. `NORMAL` may lose the last commits in a
   * power cut (never in a crash of the process), and writes several times as fast. @default "FULL"
   */
  readonly synchronous?: "FULL" | "NORMAL";
}

const WORDS: DialectWords = {
  serial: "INTEGER PRIMARY KEY",
  integer: "INTEGER",
  lookups: [
    `CREATE INDEX tasks_request ON tasks ("owner", "connection", "requestId") WHERE "connection" IS NOT NULL`,
    `CREATE INDEX tasks_run ON tasks ("engine", "runRef") WHERE "runRef" IS NOT NULL`,
  ],
  guards: [
    `CREATE TRIGGER events_append_only BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'events are append-only'); END`,
    `CREATE TRIGGER tasks_terminal_for_ever BEFORE UPDATE ON tasks WHEN ${ENDED_ROW}
       AND (NEW."status" IS NOT OLD."status" OR NEW."outcome" IS NOT OLD."outcome" OR NEW."endedAt" IS NOT OLD."endedAt")
       BEGIN SELECT RAISE(ABORT, '${ENDED_MESSAGE}'); END`,
  ],
};

/**
 * Opens (and migrates) a task store on SQLite.
 * @throws WorkflowError `configuration` for a file that cannot be opened, is no database, or was written by a newer
 *   release; `store_unavailable` if another process holds it
 */
export async function sqliteStore(options: SqliteStoreOptions): Promise<TaskStore> {
  const settings = { busyTimeoutMs: 5_000, changePollMs: 100, synchronous: "FULL" as const, ...options };
  const database = await open(settings);
  const build = queryBuilder((kysely) => ({
    createAdapter: () => new kysely.SqliteAdapter(),
    createIntrospector: (db) => new kysely.SqliteIntrospector(db),
    createQueryCompiler: () => new kysely.SqliteQueryCompiler(),
  }));
  return new KyselyTaskStore(new SqliteDatabase(database, settings), build);
}

async function open(options: Required<SqliteStoreOptions>): Promise<BetterSqlite3.Database> {
  const { path, busyTimeoutMs, synchronous } = options;
  // SQLite takes "" for a database that is deleted when it is closed.
  if (typeof path !== "string" || path === "") {
    throw new WorkflowError(
      "configuration",
      'The SQLite store needs the path of its database file: sqliteStore({ path: "tasks.db" })',
    );
  }
  let database: BetterSqlite3.Database | undefined;
  try {
    // SQLite itself hardly waits, here and later: it would hold up the event loop. See `unlocked`.
    const opened = new BetterSqlite3(path, { timeout: 20 });
    database = opened;
    // SQLite itself says so only when something is written.
    if (!opened.memory) accessSync(path, constants.W_OK);
    // SQLite does not wait at all for the lock that the change to WAL takes: a new file is often opened by many at once.
    await unlocked(busyTimeoutMs, () => opened.pragma("journal_mode = WAL"));
    opened.pragma(`synchronous = ${synchronous}`);
    await unlocked(busyTimeoutMs, () => migrate(opened));
    return opened;
  } catch (error) {
    database?.close();
    // better-sqlite3's own checks, of the folder for one, and ours.
    const { code = "" } = error as { code?: string };
    const isForeign = error instanceof TypeError || ["EACCES", "EPERM", "EROFS"].includes(code);
    throw isForeign ? unopenable(error, path) : explain(error, path);
  }
}

/** Tries until other processes let it, without holding up the event loop. */
async function unlocked(waitMs: number, work: () => unknown): Promise<void> {
  const until = Date.now() + waitMs;
  for (;;) {
    try {
      work();
      return;
    } catch (error) {
      const busy = (error as { code?: string }).code?.startsWith("SQLITE_BUSY") === true;
      if (!busy || Date.now() >= until) throw error;
      await sleep(5 + Math.random() * 20);
    }
  }
}

function migrate(database: BetterSqlite3.Database): void {
  const run = database.transaction(() => {
    database.exec("CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)");
    const version = storedVersion(database);
    checkVersion(version);
    for (const migration of MIGRATIONS.slice(version))
      for (const statement of migration(WORDS)) database.exec(statement);
    const write = database.prepare("INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)");
    write.run("schema", String(MIGRATIONS.length));
    if (stored(database, "secret") === undefined) write.run("secret", newSecret());
  });
  // Opening an up-to-date file takes no write lock: hosts start many servers at once.
  const isNew = database.prepare("SELECT 1 FROM sqlite_master WHERE name = 'meta'").get() === undefined;
  const version = isNew ? 0 : storedVersion(database);
  checkVersion(version);
  if (version < MIGRATIONS.length || stored(database, "secret") === undefined) run.immediate();
}

/** 0: not there yet. */
function storedVersion(database: BetterSqlite3.Database): number {
  return Number(stored(database, "schema") ?? 0);
}

function stored(database: BetterSqlite3.Database, name: string): string | undefined {
  return database.prepare<[string], { value: string }>("SELECT value FROM meta WHERE name = ?").get(name)
    ?.value;
}

/** The writes of one file in this process, one after the other. */
interface Writers {
  last: Promise<unknown>;
  stores: number;
}

/**
 * Stores of one process on one file share the queue: a transaction lets microtasks run between its statements, and a
 * second connection that waited for it in SQLite would never let it end.
 */
const writersByFile = new Map<string, Writers>();

/**
 * A statement that SQLite has parsed and planned: most of the cost of a small one, so each is kept for the next time.
 * Rows come as arrays: the driver takes twice as long to give a task's many columns their names.
 */
interface Prepared {
  readonly statement: BetterSqlite3.Statement;
  readonly columns: readonly string[];
}

function named<Row>(columns: readonly string[], values: readonly unknown[]): Row {
  const row: Record<string, unknown> = {};
  for (let i = 0; i < columns.length; i++) row[columns[i] as string] = values[i];
  return row as Row;
}

class SqliteDatabase implements Database {
  readonly skipLocked = false;
  readonly commitsOutOfOrder = false;
  private readonly statements = new Map<string, Prepared>();
  /** Ends with the transaction that is open. */
  private transacting: Promise<void> = Promise.resolve();
  private level: SqliteStoreOptions["synchronous"];
  private readonly begin: BetterSqlite3.Statement;
  private readonly end: BetterSqlite3.Statement;
  private readonly file: string;
  private readonly writers: Writers;

  constructor(
    private readonly database: BetterSqlite3.Database,
    private readonly options: Required<SqliteStoreOptions>,
  ) {
    this.level = options.synchronous;
    this.begin = database.prepare("BEGIN IMMEDIATE");
    this.end = database.prepare("COMMIT");
    this.file = database.memory ? "" : realpathSync(database.name);
    this.writers = writersByFile.get(this.file) ?? { last: Promise.resolve(), stores: 0 };
    this.writers.stores += 1;
    if (this.file !== "") writersByFile.set(this.file, this.writers);
  }

  // A read would see what our own transaction has not committed, so it waits for the end of that one, and no other:
  // writes may queue without end. Between the last look and the read nothing may be awaited.

  async all<Row>(query: CompiledQuery<Row>): Promise<Row[]> {
    while (this.database.inTransaction) await this.transacting;
    return this.rows(query);
  }

  async first<Row>(query: CompiledQuery<Row>): Promise<Row | undefined> {
    while (this.database.inTransaction) await this.transacting;
    return this.row(query);
  }

  async run(query: CompiledQuery<unknown>): Promise<number> {
    return this.write((tx) => tx.run(query));
  }

  write<T>(work: (tx: Executor) => Promise<T>, durable = true): Promise<T> {
    const done = this.writers.last.then(() => this.transact(work, durable));
    this.writers.last = done.catch(() => {});
    return done;
  }

  /** There is one writer at a time anyway. */
  async alone(): Promise<void> {}

  async meta(name: string): Promise<string | undefined> {
    return stored(this.database, name);
  }

  violated(error: unknown): Violation | undefined {
    const { code, message = "" } = error as { code?: string; message?: string };
    if (code === "SQLITE_CONSTRAINT_PRIMARYKEY") return "pk";
    if (code === "SQLITE_CONSTRAINT_TRIGGER" && message.includes(ENDED_MESSAGE)) return "ended";
    if (code !== "SQLITE_CONSTRAINT_UNIQUE") return undefined;
    if (message.includes("idempotencyKey")) return "idempotency";
    return message.includes("claim") ? "claim" : undefined;
  }

  explain(error: unknown): unknown {
    return explain(error);
  }

  watch(changed: () => void): () => void {
    const version = () => this.database.pragma("data_version", { simple: true });
    let seen: unknown;
    const look = () => {
      try {
        const now = version();
        if (now === seen) return;
        seen = now;
      } catch {
        // Locked, or the disk is gone: reading the changes fails as well then, and is tried again.
      }
      changed();
    };
    const timer = setInterval(look, this.options.changePollMs);
    timer.unref();
    return () => clearInterval(timer);
  }

  async close(): Promise<void> {
    await this.writers.last;
    this.statements.clear();
    this.database.close();
    this.writers.stores -= 1;
    if (this.writers.stores === 0) writersByFile.delete(this.file);
  }

  private async transact<T>(work: (tx: Executor) => Promise<T>, durable: boolean): Promise<T> {
    const level = durable ? this.options.synchronous : "NORMAL";
    if (level !== this.level) this.database.exec(`PRAGMA synchronous = ${level}`);
    this.level = level;
    return this.commit(work);
  }

  private async commit<T>(work: (tx: Executor) => Promise<T>): Promise<T> {
    const tx: Executor = {
      all: async <Row>(query: CompiledQuery<Row>) => this.rows(query),
      first: async <Row>(query: CompiledQuery<Row>) => this.row(query),
      run: async (query: CompiledQuery<unknown>) =>
        this.prepared(query).statement.run(...query.parameters).changes,
    };
    await unlocked(this.options.busyTimeoutMs, () => this.begin.run());
    let ended = () => {};
    this.transacting = new Promise((resolve) => {
      ended = resolve;
    });
    try {
      const result = await work(tx);
      this.end.run();
      return result;
    } catch (error) {
      if (this.database.inTransaction) this.database.exec("ROLLBACK");
      throw error;
    } finally {
      // Directly: those who have waited read before the next transaction of the queue begins.
      ended();
    }
  }

  private rows<Row>(query: CompiledQuery<Row>): Row[] {
    const { statement, columns } = this.prepared(query);
    return (statement.all(...query.parameters) as unknown[][]).map((values) => named<Row>(columns, values));
  }

  private row<Row>(query: CompiledQuery<Row>): Row | undefined {
    const { statement, columns } = this.prepared(query);
    const values = statement.get(...query.parameters) as unknown[] | undefined;
    return values && named<Row>(columns, values);
  }

  private prepared(query: CompiledQuery<unknown>): Prepared {
    const known = this.statements.get(query.sql);
    if (known !== undefined) return known;
    const statement = this.database.prepare<unknown[], unknown>(query.sql);
    const prepared = statement.reader
      ? { statement: statement.raw(), columns: statement.columns().map(({ name }) => name) }
      : { statement, columns: [] };
    this.statements.set(query.sql, prepared);
    return prepared;
  }
}

/** @param path told to whoever opens the file, and to nobody later: clients are not concerned with the server's paths */
function explain(error: unknown, path?: string): unknown {
  const code = (error as { code?: string }).code ?? "";
  const make = (kind: "configuration" | "store_unavailable", message: string) =>
    new WorkflowError(kind, message, { cause: error, retryable: kind === "store_unavailable" });
  if (code.startsWith("SQLITE_BUSY") || code.startsWith("SQLITE_LOCKED")) {
    return make("store_unavailable", "The database is locked by another process; try again");
  }
  if (code === "SQLITE_FULL")
    return make("store_unavailable", "The disk of the database is full; try again when it has room");
  if (code.startsWith("SQLITE_IOERR"))
    return make("store_unavailable", "The database cannot be read or written; try again");
  const file = path === undefined ? "The database file" : `The file ${path}`;
  if (code === "SQLITE_NOTADB" || code.startsWith("SQLITE_CORRUPT")) {
    return make(
      "configuration",
      `${file} is not a SQLite database, or is damaged: restore it, or name another`,
    );
  }
  if (code.startsWith("SQLITE_CANTOPEN") || code.startsWith("SQLITE_READONLY"))
    return unopenable(error, path);
  return error;
}

function unopenable(cause: unknown, path?: string): WorkflowError {
  return new WorkflowError(
    "configuration",
    `The database${path === undefined ? "" : ` ${path}`} cannot be opened for writing: check that its folder exists and is yours`,
    { cause },
  );
}
