import type { FindRequest } from "@taskferry/core";
import { EngineError } from "@taskferry/core";
import { type Connection, untilAborted } from "./connection.js";
import { canonicalCode } from "./errors.js";
import { type Execution, startedAtMs } from "./execution.js";
import { type WorkflowName, workflowResource } from "./names.js";
import { KEY_LABEL } from "./start.js";

/** How executions of interrupted starts are searched. */
export interface FindOptions {
  /**
   * How long after the latest start attempt an execution that is not listed may still appear, in milliseconds. It covers
   * the call that may still be under way (60 s at most) and the list's own lag, which Google does not state. Until then
   * the search answers "not yet", afterwards "there is none", and only then is a second execution created.
   * @default 120000
   */
  readonly appearsWithinMs?: number;
  /**
   * How many pages of 100 executions, newest first, are read before the search gives up and the task ends with "start
   * outcome unknown" rather than with a second execution. One page is one of 1,200 list requests a minute.
   * @default 50
   */
  readonly maxPages?: number;
  /**
   * Narrows the list on Google's side (AIP-160), for workflows that are started very often. Labels are compared here
   * in any case. A filter that hides the execution causes a second start, so try it out first.
   * @default none
   */
  readonly filter?: (search: {
    readonly key: string;
    readonly label: string;
    readonly since: Date;
  }) => string;
}

/** More than two well-kept clocks ever differ. */
const CLOCK_SKEW_MS = 5 * 60_000;

/** The largest page of the FULL view, the only one with labels. */
const PAGE_SIZE = 100;

/** The execution that carries the key, or `undefined` when there is surely none. Throws when that cannot be said yet. */
export async function findExecution(
  connection: Connection,
  workflow: WorkflowName,
  options: FindOptions,
  search: Pick<FindRequest, "key" | "startedAtMs" | "lastStartedAtMs" | "signal">,
): Promise<Execution | undefined> {
  const { key, startedAtMs: firstStartMs, lastStartedAtMs, signal } = search;
  const client = await connection.executions();
  const oldestMs = firstStartMs - CLOCK_SKEW_MS;
  const filter = options.filter?.({ key, label: KEY_LABEL, since: new Date(oldestMs) });
  // Before the first page: an execution that appears while the pages are read is not seen any more.
  const askedAtMs = Date.now();
  let pageToken = "";
  for (let page = 0; page < (options.maxPages ?? 50); page++) {
    signal.throwIfAborted();
    const request = {
      parent: workflowResource(workflow),
      pageSize: PAGE_SIZE,
      view: "FULL" as const,
      // No orderBy: newest created first is the default, and the field is not among those that gRPC documents.
      ...(filter !== undefined && { filter }),
      ...(pageToken !== "" && { pageToken }),
    };
    const listed = await untilAborted(client.listExecutions(request, { autoPaginate: false }), signal).catch(
      none,
    );
    if (listed === undefined) return notListed(lastStartedAtMs, askedAtMs, options);
    const [executions, , response] = listed;
    const found = executions.find(({ labels }) => labels?.[KEY_LABEL] === key);
    if (found !== undefined) return found;
    pageToken = response?.nextPageToken ?? "";
    // Newest created first, and nothing starts before it is created: behind such a one there are only older ones.
    const isBehind = executions.some(
      (execution) => (startedAtMs(execution) ?? Number.POSITIVE_INFINITY) < oldestMs,
    );
    if (pageToken === "" || isBehind) return notListed(lastStartedAtMs, askedAtMs, options);
  }
  const message = `Too many executions of ${workflow.workflow} to tell whether an earlier start got through`;
  throw new EngineError({ kind: "ambiguous", code: "SEARCH_LIMIT", message });
}

/** A workflow that does not exist has no executions: the start that follows says what is wrong. */
function none(error: unknown): undefined {
  if (canonicalCode(error) !== "NOT_FOUND") throw error;
}

function notListed(
  lastStartedAtMs: number,
  askedAtMs: number,
  { appearsWithinMs = 120_000 }: FindOptions,
): undefined {
  const leftMs = lastStartedAtMs + appearsWithinMs - askedAtMs;
  if (leftMs <= 0) return undefined;
  const message = "The execution is not listed yet; it may still appear";
  throw new EngineError({
    kind: "retry",
    code: "NOT_LISTED_YET",
    message,
    retryAfterMs: Math.min(leftMs, 10_000),
  });
}
