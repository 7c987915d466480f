/** What the parts of the store share: queries of the dialect, and a database that is not asked once it is closed. */
import type { CompiledQuery } from "kysely";
import { isWorkflowError, WorkflowError } from "../contract/errors.js";
import type { Database, Executor } from "./database.js";
import { EventLog } from "./event-log.js";
import type { QueryBuilder } from "./query-builder.js";

/** A database whose errors speak Taskferry's words, with the event log that every write appends to. */
export class StoreContext {
  readonly log: EventLog;
  private closing: Promise<void> | undefined;

  constructor(
    readonly db: Database,
    private readonly builder: () => QueryBuilder,
  ) {
    this.log = new EventLog(builder);
  }

  get build(): QueryBuilder {
    return this.builder();
  }

  all<Row>(query: CompiledQuery<Row>): Promise<Row[]> {
    return this.asked(() => this.db.all(query));
  }

  first<Row>(query: CompiledQuery<Row>): Promise<Row | undefined> {
    return this.asked(() => this.db.first(query));
  }

  meta(name: "secret"): Promise<string | undefined> {
    return this.asked(() => this.db.meta(name));
  }

  /** A transaction of its own. @param durable see {@link Database.write} */
  write<T>(work: (tx: Executor) => Promise<T>, durable = true): Promise<T> {
    return this.asked(() => this.db.write(work, durable));
  }

  /** @throws WorkflowError `closed` */
  refuseClosed(): void {
    if (this.closing !== undefined) throw new WorkflowError("closed", "The task store is closed");
  }

  close(): Promise<void> {
    this.closing ??= this.db.close();
    return this.closing;
  }

  private async asked<T>(ask: () => Promise<T>): Promise<T> {
    this.refuseClosed();
    try {
      return await ask();
    } catch (error) {
      throw isWorkflowError(error) ? error : this.db.explain(error);
    }
  }
}

/** Narrows any query to one task's rows. Names as they are stored. */
export function ofTask<Query extends { where(column: "owner" | "taskId", op: "=", value: string): Query }>(
  query: Query,
  owner: string,
  taskId: string,
): Query {
  return query.where("owner", "=", owner).where("taskId", "=", taskId);
}
