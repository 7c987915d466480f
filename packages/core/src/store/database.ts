/** What runs the store's statements: `sqlite.ts` or `postgres.ts`. They are given compiled by Kysely, never as text. */
import type { CompiledQuery } from "kysely";

/** Runs compiled queries. */
export interface Executor {
  /** Rows of a SELECT or of a RETURNING clause. */
  all<Row>(query: CompiledQuery<Row>): Promise<Row[]>;
  /** The first row, if there is one. */
  first<Row>(query: CompiledQuery<Row>): Promise<Row | undefined>;
  /** @returns how many rows were changed */
  run(query: CompiledQuery<unknown>): Promise<number>;
}

/** A unique index, or (`ended`) the guard of ended rows. */
export type Violation = "pk" | "idempotency" | "claim" | "ended";

/** A database, as the store needs it. */
export interface Database extends Executor {
  /**
   * Runs a transaction that no other writer interleaves with. Commits unless `work` rejects.
   * @param durable `false` for what may be lost in a power cut, never in a crash: leases, pacing
   */
  write<T>(work: (tx: Executor) => Promise<T>, durable?: boolean): Promise<T>;
  /** In a transaction: waits until no other one goes on that has asked to be alone with the same key. */
  alone(tx: Executor, key: string): Promise<void>;
  /** What the opening has written about the database. */
  meta(name: "secret"): Promise<string | undefined>;
  /** Which promise of the schema an error says would be broken, if it does. */
  violated(error: unknown): Violation | undefined;
  /** Wraps an error of the driver. */
  explain(error: unknown): unknown;
  /** Rows that other transactions hold are passed over (PostgreSQL). */
  readonly skipLocked: boolean;
  /** Whether a later event may be seen before an earlier one: sequences count before transactions commit. */
  readonly commitsOutOfOrder: boolean;
  /** Begins to tell about changes that other processes commit. @returns ends it */
  watch(changed: () => void): () => void;
  /** Lets what was begun come to its end. Called once; nothing is asked afterwards. */
  close(): Promise<void>;
}
