/** Tells which tasks have changed, whoever changed them: every visible change has left an event in the log. */
import type { StoreContext } from "./store-context.js";
import { decodeText } from "./text.js";

type Listener = (owner: string, taskId: string) => void;

/** Events read at a time. */
const PAGE = 1_000;
/** How far below the last event another one may still be on its way when the listening begins. */
const LATE_EVENTS = 200;
/** How long a number that is missing in the log may belong to a transaction that has not ended. */
const LATE_MS = 60_000;
/** How soon the log is read again after it could not be read. */
const RETRY_MS = 1_000;

export class ChangeFeed {
  private readonly listeners = new Set<Listener>();
  private unwatch: (() => void) | undefined;
  private retry: NodeJS.Timeout | undefined;
  private last: number | undefined;
  /** Numbers between those seen, and until when they are looked for. */
  private readonly missing = new Map<number, number>();
  private reading = false;
  private again = false;

  constructor(private readonly context: StoreContext) {}

  /** @returns ends the listening. @throws WorkflowError `closed` */
  listen(listener: Listener): () => void {
    this.context.refuseClosed();
    // One entry per call, so that the same function may listen twice.
    const entry: Listener = (owner, taskId) => listener(owner, taskId);
    this.listeners.add(entry);
    if (this.unwatch === undefined) this.start();
    return () => {
      this.listeners.delete(entry);
      if (this.listeners.size === 0) this.stop();
    };
  }

  /** Names as callers know them. */
  tell(owner: string, taskId: string): void {
    for (const listener of this.listeners) {
      try {
        listener(owner, taskId);
      } catch (error) {
        // The change is committed: whoever made it must not hear that it failed.
        process.emitWarning(error instanceof Error ? error : String(error));
      }
    }
  }

  close(): void {
    this.listeners.clear();
    this.stop();
  }

  private start(): void {
    this.last = undefined;
    this.missing.clear();
    this.unwatch = this.context.db.watch(() => void this.read());
    void this.read();
  }

  private stop(): void {
    clearTimeout(this.retry);
    this.unwatch?.();
    this.unwatch = undefined;
  }

  private async read(): Promise<void> {
    if (this.reading) {
      this.again = true;
      return;
    }
    this.reading = true;
    try {
      do {
        this.again = false;
        await this.catchUp();
      } while (this.again && this.unwatch !== undefined);
    } catch {
      // The store says on every operation what is wrong with it.
      clearTimeout(this.retry);
      if (this.unwatch !== undefined) this.retry = setTimeout(() => void this.read(), RETRY_MS).unref();
    } finally {
      this.reading = false;
    }
  }

  private async catchUp(): Promise<void> {
    const { build, db } = this.context;
    const seqs = build.selectFrom("events").select(["seq", "owner", "taskId"]);
    let last = this.last ?? (await this.beginning());
    for (;;) {
      const rows = await this.context.all(seqs.where("seq", ">", last).orderBy("seq").limit(PAGE).compile());
      for (const row of rows) {
        if (db.commitsOutOfOrder) this.miss(last, row.seq);
        last = row.seq;
        this.tell(decodeText(row.owner), decodeText(row.taskId));
      }
      this.last = last;
      if (rows.length < PAGE) break;
    }
    if (this.missing.size === 0) return;
    const numbers = [...this.missing.keys()];
    for (const row of await this.context.all(seqs.where("seq", "in", numbers).compile())) {
      this.missing.delete(row.seq);
      this.tell(decodeText(row.owner), decodeText(row.taskId));
    }
    const now = Date.now();
    for (const [seq, until] of this.missing) if (until <= now) this.missing.delete(seq);
  }

  /** Where commits may overtake each other, some are told in vain rather than one not at all. */
  private async beginning(): Promise<number> {
    const { build, db } = this.context;
    const query = build.selectFrom("events").select("seq").orderBy("seq", "desc").limit(1);
    const last = (await this.context.first(query.compile()))?.seq ?? 0;
    return db.commitsOutOfOrder ? Math.max(0, last - LATE_EVENTS) : last;
  }

  /** A gap is a transaction that has not committed yet, or never will. */
  private miss(before: number, after: number): void {
    const until = Date.now() + LATE_MS;
    for (let seq = Math.max(before + 1, after - PAGE); seq < after && this.missing.size < PAGE; seq++)
      this.missing.set(seq, until);
  }
}
