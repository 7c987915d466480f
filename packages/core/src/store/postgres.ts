/** PostgreSQL through pg: for servers on several machines that share their tasks. */
import {
  type CompiledQuery,
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
} from "kysely";
import pg from "pg";
import { isWorkflowError, WorkflowError } from "../errors.js";
import { KyselyTaskStore } from "./kysely-store.js";
import { checkVersion, type DialectWords, MIGRATIONS } from "./migrations.js";
import type { Tables } from "./schema.js";
import type { Database, Executor } from "./statements.js";
import type { TaskStore } from "./task-store.js";

export interface PostgresStoreOptions {
  /** E.g. `postgres://user:password@host:5432/database`. Never logged. */
  readonly connectionString: string;
  /** The schema that holds the tables; made if it is not there. @default "taskferry" */
  readonly schema?: string;
  /** The largest number of connections. One more listens for changes. @default 10 */
  readonly maxConnections?: number;
}

/** Wakes the listeners of all servers. */
const CHANNEL = "taskferry_changes";
/** Serializes migrations of servers that start at the same time. */
const MIGRATION_LOCK = 7_165_473_019;

const WORDS: DialectWords = {
  serial: "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
  integer: "BIGINT",
  guards: [
    `CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION '%', TG_ARGV[0]; END $$`,
    `CREATE TRIGGER events_append_only BEFORE UPDATE ON events
       FOR EACH ROW EXECUTE FUNCTION refuse_change('events are append-only')`,
    `CREATE TRIGGER tasks_terminal_for_ever BEFORE UPDATE ON tasks
       FOR EACH ROW WHEN (OLD."endedAt" IS NOT NULL AND (NEW."status" IS DISTINCT FROM OLD."status"
         OR NEW."outcome" IS DISTINCT FROM OLD."outcome" OR NEW."endedAt" IS DISTINCT FROM OLD."endedAt"))
       EXECUTE FUNCTION refuse_change('an ended task never changes')`,
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
  const schema = options.schema ?? "taskferry";
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(schema)) {
    throw new WorkflowError(
      "configuration",
      `The schema name ${JSON.stringify(schema)} must be 1 to 63 of a-z 0-9 _`,
    );
  }
  const config = {
    connectionString: options.connectionString,
    options: `-c search_path=${schema}`,
    application_name: "taskferry",
    types: { getTypeParser },
  };
  const pool = new pg.Pool({ ...config, max: options.maxConnections ?? 10 });
  // An idle connection that breaks is replaced by the next query; without a listener it would end the process.
  pool.on("error", () => {});
  try {
    await migrate(pool, schema);
  } catch (error) {
    await pool.end().catch(() => {});
    throw isWorkflowError(error) ? error : explain(error);
  }
  const build = new Kysely<Tables>({
    dialect: {
      createAdapter: () => new PostgresAdapter(),
      createDriver: () => new DummyDriver(),
      createIntrospector: (db) => new PostgresIntrospector(db),
      createQueryCompiler: () => new PostgresQueryCompiler(),
    },
  });
  return new KyselyTaskStore(new PostgresDatabase(pool, () => new pg.Client(config), schema), build);
}

/** 64-bit integers are epoch milliseconds and counters here: they fit a number. */
function getTypeParser(oid: number, format?: "text" | "binary"): (value: string) => unknown {
  const parser = pg.types.getTypeParser(oid, format as "text") as (value: string) => unknown;
  return oid === pg.types.builtins.INT8 ? Number : parser;
}

async function migrate(pool: pg.Pool, schema: string): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query("BEGIN");
    await client.query("SELECT pg_advisory_xact_lock($1)", [MIGRATION_LOCK]);
    await client.query(`CREATE SCHEMA IF NOT EXISTS ${schema}`);
    await client.query("CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)");
    const stored = await client.query<{ value: string }>("SELECT value FROM meta WHERE name = 'schema'");
    const version = Number(stored.rows[0]?.value ?? 0);
    checkVersion(version);
    for (const migration of MIGRATIONS.slice(version)) {
      for (const statement of migration(WORDS)) await client.query(statement);
    }
    await client.query(
      "INSERT INTO meta (name, value) VALUES ('schema', $1) ON CONFLICT (name) DO UPDATE SET value = $1",
      [String(MIGRATIONS.length)],
    );
    await client.query("COMMIT");
  } catch (error) {
    await client.query("ROLLBACK").catch(() => {});
    throw error;
  } finally {
    client.release();
  }
}

class PostgresDatabase implements Database {
  readonly skipLocked = true;
  readonly commitsOutOfOrder = true;

  constructor(
    private readonly pool: pg.Pool,
    private readonly makeListener: () => pg.Client,
    private readonly schema: string,
  ) {}

  async all<Row>(query: CompiledQuery<Row>): Promise<Row[]> {
    return (await this.pool.query(query.sql, [...query.parameters])).rows as Row[];
  }

  async first<Row>(query: CompiledQuery<Row>): Promise<Row | undefined> {
    return (await this.all(query))[0];
  }

  async run(query: CompiledQuery<unknown>): Promise<number> {
    return (await this.pool.query(query.sql, [...query.parameters])).rowCount ?? 0;
  }

  async write<T>(work: (tx: Executor) => Promise<T>, durable = true): Promise<T> {
    const client = await this.pool.connect();
    const tx: Executor = {
      all: async <Row>(query: CompiledQuery<Row>) =>
        (await client.query(query.sql, [...query.parameters])).rows as Row[],
      first: async <Row>(query: CompiledQuery<Row>) =>
        (await client.query(query.sql, [...query.parameters])).rows[0] as Row | undefined,
      run: async (query: CompiledQuery<unknown>) =>
        (await client.query(query.sql, [...query.parameters])).rowCount ?? 0,
    };
    let broken: Error | undefined;
    try {
      await client.query(durable ? "BEGIN" : "BEGIN; SET LOCAL synchronous_commit = off");
      const result = await work(tx);
      await client.query("COMMIT");
      return result;
    } catch (error) {
      await client.query("ROLLBACK").catch((failure: Error) => {
        broken = failure;
      });
      throw error;
    } finally {
      client.release(broken);
    }
  }

  violated(error: unknown): "pk" | "idempotency" | "claim" | undefined {
    const { code, constraint } = error as { code?: string; constraint?: string };
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
    let client: pg.Client | undefined;
    let retry: NodeJS.Timeout | undefined;
    const connect = async () => {
      const listener = this.makeListener();
      client = listener;
      const again = () => {
        if (ended || client !== listener) return;
        client = undefined;
        void listener.end().catch(() => {});
        retry = setTimeout(() => void connect(), 1_000);
        retry.unref();
      };
      listener.on("error", again);
      listener.on("end", again);
      listener.on("notification", ({ payload }) => {
        if (payload === this.schema) changed();
      });
      try {
        await listener.connect();
        await listener.query(`LISTEN ${CHANNEL}`);
        // What was told while nobody listened.
        changed();
      } catch {
        again();
      }
    };
    void connect();
    return () => {
      ended = true;
      clearTimeout(retry);
      void client?.end().catch(() => {});
    };
  }

  async close(): Promise<void> {
    await this.pool.end();
  }
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
  if (code === "53100") return make("store_unavailable", "The disk of the PostgreSQL server is full");
  const unreachable =
    /^(08|53|57P)/.test(code) || /^E[A-Z]+$/.test(code) || /terminated|timeout/i.test(message ?? "");
  return unreachable ? make("store_unavailable", "PostgreSQL cannot be reached; try again") : error;
}
