/**
 * Kysely, loaded with the first query: that is the largest part of a start, and most of the servers that hosts start are
 * never asked for a task.
 */
import { createRequire } from "node:module";
import type * as KyselyModule from "kysely";
import type { Tables } from "./tables.js";

/** Makes queries of a dialect; never executes. */
export type QueryBuilder = KyselyModule.Kysely<Tables>;

/** The parts of a dialect that make queries. */
type QueryDialect = Omit<KyselyModule.Dialect, "createDriver">;

/** Queries are made where nothing may be awaited: a transaction of SQLite would let others in. */
const kysely = () => createRequire(import.meta.url)("kysely") as typeof KyselyModule;

/** @returns gives the same builder each time */
export function queryBuilder(
  dialect: (kysely: typeof KyselyModule) => QueryDialect,
  schema?: string,
): () => QueryBuilder {
  let made: QueryBuilder | undefined;
  return () => {
    if (made === undefined) {
      const loaded = kysely();
      const createDriver = () => new loaded.DummyDriver();
      const build: QueryBuilder = new loaded.Kysely({ dialect: { ...dialect(loaded), createDriver } });
      made = schema === undefined ? build : build.withSchema(schema);
    }
    return made;
  };
}

/** A query that is written down. */
export function rawQuery(sql: string, parameters: unknown[]): KyselyModule.CompiledQuery {
  return kysely().CompiledQuery.raw(sql, parameters);
}
