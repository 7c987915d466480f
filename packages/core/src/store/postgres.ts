/** PostgreSQL through pg: for servers on several machines that share their tasks. */
import type { CompiledQuery, Kysely } from "kysely";
import pg from "pg";
import { isWorkflowError, WorkflowError } from "../contract/errors.js";
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
import { queryBuilder, rawQuery } from "./query-builder.js";
import type { TaskStore } from "./task-store.js";

export interface PostgresStoreOptions {
  /** E.g. `postgres://user:password@host:5432/database`. Never logged. This, or a `pool`. */
  readonly connectionString?: string;
  /** A pool of your own, of at least 2 connections: one is held while changes are listened for. It is not ended. */
  readonly pool?: pg.Pool;
  /** The schema that holds the tables; made if it is not there. @default "taskferry" */
  readonly schema?: string;
  /** The largest number of connections. One more listens for changes. Not with a `pool`. @default 10 */
  readonly maxConnections?: number;
}

/** Wakes the listeners of all servers. */
const CHANNEL = "taskferry_changes";
/** Serializes migrations of servers that start at the same time. */
const MIGRATION_LOCK = 7_165_473_019;

/** The first half of the advisory locks of {@link Database.alone}: other programs may have locks in the same database. */
const OWNER_LOCKS = 716_547_301;

const WORDS: DialectWords = {
  serial: "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
  integer: "BIGINT",
  // Hashes, since a B-tree refuses entries beyond 2704 bytes: native refs and JSON-RPC ids have no such bound.
  lookups: [
    `CREATE INDEX tasks_request ON tasks USING hash ("connection") WHERE "connection" IS NOT NULL`,
    `CREATE INDEX tasks_run ON tasks USING hash ("runRef") WHERE "runRef" IS NOT NULL`,
  ],
  guards: [
    `CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION '%', TG_ARGV[0]; END $$`,
    `CREATE TRIGGER events_append_only BEFORE UPDATE ON events
       FOR EACH ROW EXECUTE FUNCTION refuse_change('events are append-only')`,
    `CREATE TRIGGER tasks_terminal_for_ever BEFORE UPDATE ON tasks
       FOR EACH ROW WHEN (${ENDED_ROW} AND (NEW."status" IS DISTINCT FROM OLD."status"
         OR NEW."outcome" IS DISTINCT FROM OLD."outcome" OR NEW."endedAt" IS DISTINCT FROM OLD."endedAt"))
       EXECUTE FUNCTION refuse_change('${ENDED_MESSAGE}')`,
    // In the transaction of the change itself: who hears it finds the change.
    `CREATE FUNCTION tell_changes() RETURNS trigger LANGUAGE plpgsql AS $$
       BEGIN PERFORM pg_notify('${CHANNEL}', TG_TABLE_SCHEMA); RETURN NULL; END $$`,
    `CREATE TRIGGER events_tell AFTER INSERT ON events FOR EACH STATEMENT EXECUTE FUNCTION tell_changes()`,
  ],
};

/**
 * Opens (and migrates) a task store on PostgreSQL.
 * @throws WorkflowError `configuration` for credentials, names or schema versions that cannot work; `store_unavailable`
 *   if the server cannot be reached
 */
export async function postgresStore(options: PostgresStoreOptions): Promise<TaskStore> {
  checkConnections(options);
  const schema = options.schema ?? "taskferry";
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(schema)) {
    throw new WorkflowError(
      "configuration",
      `The schema name ${JSON.stringify(schema)} must be 1 to 63 of a-z 0-9 _`,
    );
  }
  const pool = options.pool ?? ownPool(options);
  const end = options.pool === undefined ? () => pool.end() : async () => {};
  try {
    await migrate(pool, schema);
  } catch (error) {
    await end().catch(() => {});
    throw isWorkflowError(error) ? error : explain(error);
  }
  const words = (kysely: typeof import("kysely")) => ({
    createAdapter: () => new kysely.PostgresAdapter(),
    createIntrospector: (db: Kysely<unknown>) => new kysely.PostgresIntrospector(db),
    createQueryCompiler: () => new kysely.PostgresQueryCompiler(),
  });
  return new KyselyTaskStore(new PostgresDatabase(pool, schema, end), queryBuilder(words, schema));
}

function checkConnections({ connectionString, pool }: PostgresStoreOptions): void {
  if ((connectionString === undefined) === (pool === undefined))
    throw new WorkflowError("configuration", "Give the PostgreSQL store a connectionString or a pool");
  if (pool !== undefined && pool.options.max < 2)
    throw new WorkflowError("configuration", "The PostgreSQL pool must have at least 2 connections");
}

function ownPool({ connectionString, maxConnections = 10 }: PostgresStoreOptions): pg.Pool {
  const pool = new pg.Pool({
    connectionString,
    max: maxConnections + 1,
    application_name: "taskferry",
    // A host that swallows packets is unreachable too.
    connectionTimeoutMillis: 10_000,
    keepAlive: true,
  });
  // An idle connection that breaks is replaced by the next query; without a listener it would end the process.
  pool.on("error", () => {});
  return pool;
}

/** 64-bit integers are epoch milliseconds and counters here: they fit a number. */
function getTypeParser(oid: number, format?: "text" | "binary"): (value: string) => unknown {
  const parser = pg.types.getTypeParser(oid, format as "text") as (value: string) => unknown;
  return oid === pg.types.builtins.INT8 ? Number : parser;
}

/** Parsers go with every query: a pool may be somebody else's, and set up in another way. */
const types = { getTypeParser } as pg.CustomTypesConfig;

async function migrate(pool: pg.Pool, schema: string): Promise<void> {
  // Opening an up-to-date database needs no lock, and no right to make schemas.
  const found = await storedVersion(pool, schema);
  checkVersion(found);
  if (found === MIGRATIONS.length) {
    // Releases before made it when it was first asked for.
    if ((await stored(pool, schema, "secret")) === undefined) await writeSecret(pool, schema);
    return;
  }
  const client = await pool.connect();
  try {
    await client.query("BEGIN");
    await client.query("SELECT pg_advisory_xact_lock($1)", [MIGRATION_LOCK]);
    await client.query(`CREATE SCHEMA IF NOT EXISTS ${schema}`);
    await client.query(`SET LOCAL search_path TO ${schema}`);
    await client.query("CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)");
    const version = await storedVersion(client, schema);
    checkVersion(version);
    for (const migration of MIGRATIONS.slice(version)) {
      for (const statement of migration(WORDS)) await client.query(statement);
    }
    await client.query(
      "INSERT INTO meta (name, value) VALUES ('schema', $1) ON CONFLICT (name) DO UPDATE SET value = $1",
      [String(MIGRATIONS.length)],
    );
    await writeSecret(client, schema);
    await client.query("COMMIT");
  } catch (error) {
    await client.query("ROLLBACK").catch(() => {});
    throw error;
  } finally {
    client.release();
  }
}

async function writeSecret(client: pg.Pool | pg.PoolClient, schema: string): Promise<void> {
  const sql = `INSERT INTO ${schema}.meta (name, value) VALUES ('secret', $1) ON CONFLICT DO NOTHING`;
  await client.query(sql, [newSecret()]);
}

/** 0: not there yet. */
async function storedVersion(client: pg.Pool | pg.PoolClient, schema: string): Promise<number> {
  const table = await client.query<{ found: string | null }>("SELECT to_regclass($1) AS found", [
    `${schema}.meta`,
  ]);
  if ((table.rows[0]?.found ?? null) === null) return 0;
  return Number((await stored(client, schema, "schema")) ?? 0);
}

async function stored(
  client: pg.Pool | pg.PoolClient,
  schema: string,
  name: string,
): Promise<string | undefined> {
  const sql = `SELECT value FROM ${schema}.meta WHERE name = $1`;
  return (await client.query<{ value: string }>(sql, [name])).rows[0]?.value;
}

class PostgresDatabase implements Database {
  readonly skipLocked = true;
  readonly commitsOutOfOrder = true;
  /** What a closing has to wait for: a pool that is ended forgets whoever still waits for a connection. */
  private readonly pending = new Set<Promise<unknown>>();

  constructor(
    private readonly pool: pg.Pool,
    private readonly schema: string,
    private readonly end: () => Promise<void>,
  ) {}

  all<Row>(query: CompiledQuery<Row>): Promise<Row[]> {
    return this.track(executor(this.pool).all(query));
  }

  first<Row>(query: CompiledQuery<Row>): Promise<Row | undefined> {
    return this.track(executor(this.pool).first(query));
  }

  run(query: CompiledQuery<unknown>): Promise<number> {
    return this.track(executor(this.pool).run(query));
  }

  write<T>(work: (tx: Executor) => Promise<T>, durable = true): Promise<T> {
    return this.track(this.transact(work, durable));
  }

  async alone(tx: Executor, key: string): Promise<void> {
    // A holder that has lost its network would keep it for hours.
    await tx.run(rawQuery("SET LOCAL lock_timeout = '5s'", []));
    await tx.run(rawQuery("SELECT pg_advisory_xact_lock($1, hashtext($2))", [OWNER_LOCKS, key]));
  }

  meta(name: string): Promise<string | undefined> {
    return this.track(stored(this.pool, this.schema, name));
  }

  violated(error: unknown): Violation | undefined {
    const { code, constraint, message } = error as { code?: string; constraint?: string; message?: string };
    if (code === "P0001" && message === ENDED_MESSAGE) return "ended";
    if (code !== "23505") return undefined;
    if (constraint === "tasks_pkey") return "pk";
    if (constraint === "tasks_idempotency") return "idempotency";
    return constraint === "tasks_claim" ? "claim" : undefined;
  }

  explain(error: unknown): unknown {
    return explain(error);
  }

  watch(changed: () => void): () => void {
    let ended = false;
    let client: pg.PoolClient | undefined;
    let retry: NodeJS.Timeout | undefined;
    const drop = () => {
      // Destroyed: it must not go back to the pool while it listens.
      client?.release(true);
      client = undefined;
    };
    const again = () => {
      drop();
      if (ended) return;
      clearTimeout(retry);
      retry = setTimeout(() => void this.track(connect()), 1_000).unref();
    };
    const connect = async () => {
      try {
        const listener = await this.pool.connect();
        client = listener;
        const lost = () => {
          if (client === listener) again();
        };
        listener.on("error", lost);
        listener.on("end", lost);
        listener.on("notification", ({ payload }) => {
          if (payload === this.schema) changed();
        });
        await listener.query(`LISTEN ${CHANNEL}`);
        if (ended) return drop();
        // What was told while nobody listened.
        changed();
      } catch {
        again();
      }
    };
    void this.track(connect());
    return () => {
      ended = true;
      clearTimeout(retry);
      drop();
    };
  }

  async close(): Promise<void> {
    while (this.pending.size > 0) await Promise.allSettled(this.pending);
    await this.end();
  }

  private async transact<T>(work: (tx: Executor) => Promise<T>, durable: boolean): Promise<T> {
    const client = await this.pool.connect();
    let broken: Error | undefined;
    // Without a listener, a connection that breaks between two queries would end the process.
    const lost = (error: Error) => {
      broken = error;
    };
    client.on("error", lost);
    try {
      // Said here, since a database may have another default: what is counted under a lock must see what others wrote.
      const begin = "BEGIN ISOLATION LEVEL READ COMMITTED";
      await client.query(durable ? begin : `${begin}; SET LOCAL synchronous_commit = off`);
      const result = await work(executor(client));
      await client.query("COMMIT");
      return result;
    } catch (error) {
      await client.query("ROLLBACK").catch(lost);
      throw error;
    } finally {
      client.off("error", lost);
      client.release(broken);
    }
  }

  private track<T>(work: Promise<T>): Promise<T> {
    this.pending.add(work);
    const done = () => void this.pending.delete(work);
    work.then(done, done);
    return work;
  }
}

function executor(client: pg.Pool | pg.PoolClient): Executor {
  const ask = (query: CompiledQuery<unknown>) =>
    client.query({ text: query.sql, values: [...query.parameters], types });
  return {
    all: async <Row>(query: CompiledQuery<Row>) => (await ask(query)).rows as Row[],
    first: async <Row>(query: CompiledQuery<Row>) => (await ask(query)).rows[0] as Row | undefined,
    run: async (query: CompiledQuery<unknown>) => (await ask(query)).rowCount ?? 0,
  };
}

function explain(error: unknown): unknown {
  const { code = "", message } = error as { code?: string; message?: string };
  const make = (kind: "configuration" | "store_unavailable", text: string) =>
    new WorkflowError(kind, text, { cause: error, retryable: kind === "store_unavailable" });
  if (code === "28P01" || code === "28000")
    return make("configuration", "PostgreSQL refuses the user or password");
  if (code === "3D000")
    return make("configuration", "The PostgreSQL database does not exist: create it, or name another");
  if (code === "42501")
    return make("configuration", "The PostgreSQL user may not create or use the schema's tables");
  // Two servers in each other's way: one of them was sent back.
  if (code === "40001" || code === "40P01" || code === "55P03")
    return make("store_unavailable", "PostgreSQL is busy; try again");
  if (code === "53100") return make("store_unavailable", "The disk of the PostgreSQL server is full");
  const unreachable =
    /^(08|53|57P)/.test(code) || /^E[A-Z]+$/.test(code) || /terminated|timeout/i.test(message ?? "");
  return unreachable ? make("store_unavailable", "PostgreSQL cannot be reached; try again") : error;
}
