import type { LogPage } from "@taskferry/core";
import { explain, refused, statusOf } from "./errors.js";
import { readJobs } from "./jobs.js";
import { cleanLog } from "./log-text.js";
import type { KnownRun } from "./ref.js";
import type { Session } from "./session.js";

import type { Job } from "./wire.js";

const PAGE_BYTES = 64 * 1024;
/** While a run goes on, a job that ended earlier may be listed later: newer ones wait for it this long. */
const ORDER_SETTLES_MS = 10_000;

/** Before the first job. */
export const START_CURSOR = "0.0";

/** Jobs in the order in which they ended; `offset` bytes of this job's raw log have been given. */
interface Position {
  readonly endedAtMs: number;
  readonly jobId: string;
  /** Absent: all of it. */
  readonly offset?: number;
}

/**
 * One page of a run's log: the logs of its jobs in the order in which they ended. GitHub gives a job's log when the
 * job has ended, so while a run goes on a page may be empty and its cursor the same.
 */
export async function readLogs(
  session: Session,
  ref: KnownRun,
  cursor: string | undefined,
  signal: AbortSignal,
): Promise<LogPage> {
  const { api, runs } = session;
  const position = cursor === undefined ? undefined : parseCursor(cursor);
  const latest = await runs.read(ref, ref.runId, signal);
  const attempt = ref.attempt ?? 1;
  const ended = latest.attempt > attempt || latest.status === "completed";
  const all = await readJobs(api, ref, ref.runId, latest.attempt === attempt ? undefined : attempt, signal);
  const settledBeforeMs = ended ? Number.POSITIVE_INFINITY : api.nowMs() - ORDER_SETTLES_MS;
  const jobs = all.jobs
    .filter((job) => job.status === "completed" && job.conclusion !== "skipped")
    .filter((job) => endedAtMs(job) <= settledBeforeMs)
    .sort((a, b) => endedAtMs(a) - endedAtMs(b) || compareIds(a.id, b.id));

  const index = position === undefined ? 0 : jobs.findIndex((job) => comesAfter(job, position));
  const job = index === -1 ? undefined : jobs[index];
  if (job === undefined) {
    return ended ? { text: "" } : { text: "", cursor: cursor ?? START_CURSOR };
  }
  const offset = position?.jobId === job.id ? (position.offset ?? 0) : 0;
  const page = await readPage(session, ref, job, offset, signal);
  const here = { endedAtMs: endedAtMs(job), jobId: job.id };
  const next = page.offset === undefined ? here : { ...here, offset: page.offset };
  const complete = ended && page.offset === undefined && index === jobs.length - 1;
  return { text: page.text, ...(complete ? {} : { cursor: toCursor(next) }) };
}

async function readPage(
  { api }: Session,
  ref: KnownRun,
  job: Job,
  offset: number,
  signal: AbortSignal,
): Promise<{ readonly text: string; readonly offset?: number }> {
  const heading = offset === 0 ? `=== ${job.name}: ${job.conclusion} ===\n` : "";
  const route = "/repos/{owner}/{repo}/actions/jobs/{job_id}/logs";
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of api.download(ref, route, { job_id: job.id }, offset, signal)) {
      chunks.push(chunk);
      size += chunk.length;
      if (size > PAGE_BYTES) break;
    }
  } catch (error) {
    // 416: the offset is the log's end, to a byte.
    if (statusOf(error) === 416) return { text: heading };
    if (explain(error)?.kind !== "gone") throw error;
    return { text: `${heading}[GitHub does not keep this log any more]\n` };
  }
  const bytes = Buffer.concat(chunks);
  if (size <= PAGE_BYTES) return { text: heading + cleanLog(bytes.toString("utf8")) };
  const newline = bytes.lastIndexOf(0x0a, PAGE_BYTES);
  const end = newline === -1 ? PAGE_BYTES : newline + 1;
  return { text: heading + cleanLog(bytes.subarray(0, end).toString("utf8")), offset: offset + end };
}

function comesAfter(job: Job, position: Position): boolean {
  if (job.id === position.jobId) return position.offset !== undefined;
  const difference = endedAtMs(job) - position.endedAtMs || compareIds(job.id, position.jobId);
  return difference > 0;
}

function endedAtMs(job: Job): number {
  return job.completedAt === null ? 0 : Date.parse(job.completedAt);
}

/** Ids are numbers of any length, written as strings. */
function compareIds(a: string, b: string): number {
  return a.length - b.length || (a < b ? -1 : a > b ? 1 : 0);
}

function toCursor(position: Position): string {
  const { endedAtMs, jobId, offset } = position;
  return [endedAtMs, jobId, ...(offset === undefined ? [] : [offset])].join(".");
}

function parseCursor(cursor: string): Position {
  const [, endedAt, jobId, offset] = /^(\d{1,16})\.(\d{1,20})(?:\.(\d{1,15}))?$/.exec(cursor) ?? [];
  if (endedAt === undefined || jobId === undefined)
    throw refused("InvalidCursor", "Not a cursor of this log.");
  const position = { endedAtMs: Number(endedAt), jobId };
  return offset === undefined ? position : { ...position, offset: Number(offset) };
}
