/** What operators see: log lines, metrics, traces. Never arguments, results or secrets. */
import { createHash } from "node:crypto";
import {
  type Counter,
  type Histogram,
  type Meter,
  type MeterProvider,
  metrics,
  type Span,
  SpanStatusCode,
  trace,
} from "@opentelemetry/api";
import type { Task } from "./task.js";

/** A pino-shaped logger. Taskferry's own default writes to stderr: stdout belongs to the protocol on stdio. */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** A logger that says nothing. */
export const SILENT: Logger = { debug() {}, info() {}, warn() {}, error() {} };

/** Ids of tasks and owners are data from strangers: log lines carry this instead. 12 hex characters. */
export function idForLog(id: string): string {
  return createHash("sha256").update(id).digest("hex").slice(0, 12);
}

/**
 * An instrument of whichever meter provider is there when it is used: unlike traces, the metrics of the OpenTelemetry
 * API do not pass on to an SDK that is installed later.
 */
function late<Instrument>(make: (meter: Meter) => Instrument): () => Instrument {
  let provider: MeterProvider | undefined;
  let made: Instrument;
  return () => {
    const current = metrics.getMeterProvider();
    if (current !== provider) {
      provider = current;
      made = make(current.getMeter("taskferry"));
    }
    return made;
  };
}

function counter(name: string, description: string): Pick<Counter, "add"> {
  const instrument = late((meter) => meter.createCounter(name, { description }));
  return { add: (value, attributes) => instrument().add(value, attributes) };
}

function histogram(name: string, unit: string, description: string): Pick<Histogram, "record"> {
  const instrument = late((meter) => meter.createHistogram(name, { unit, description }));
  return { record: (value, attributes) => instrument().record(value, attributes) };
}

/** Counters and histograms, through the OpenTelemetry API: next to free of cost until the host installs an SDK. */
export const counters = {
  created: counter("taskferry.tasks.created", "Tasks created"),
  ended: counter("taskferry.tasks.ended", "Tasks that reached a terminal status"),
  nativeCalls: counter("taskferry.native.calls", "Calls to engines, by operation and verdict"),
  coalescedPolls: counter("taskferry.polls.coalesced", "Polls answered from the row"),
  limitHits: counter("taskferry.limits.hits", "Requests refused by a limit"),
  failedLookups: counter("taskferry.lookups.failed", "Look-ups of tasks that are not there"),
  startLatency: histogram("taskferry.start.latency", "ms", "Row written to run bound"),
} as const;

/** An audit line (SEP-1686, 8.3): who, what, which task; never what was said. */
export function audit(
  log: Logger,
  event: string,
  task: Pick<Task, "owner" | "taskId" | "workflow">,
  more: Readonly<Record<string, string>> = {},
): void {
  const { owner, taskId, workflow } = task;
  log.info({ audit: event, owner: idForLog(owner), task: idForLog(taskId), workflow, ...more }, event);
}

/** Counts a task that has just ended, and writes it into the audit. */
export function noteEnd(log: Logger, task: Task): void {
  const { engine, status } = task;
  counters.ended.add(1, { engine, status });
  audit(log, "task.ended", task, { status });
}

const tracer = trace.getTracer("taskferry");

/** Runs `work` in a span; an error is recorded by its name, since messages may quote what clients sent. */
export async function traced<T>(
  name: string,
  attributes: Record<string, string | number | boolean>,
  work: (span: Span) => Promise<T>,
): Promise<T> {
  return tracer.startActiveSpan(name, { attributes }, async (span) => {
    try {
      return await work(span);
    } catch (error) {
      span.setStatus({ code: SpanStatusCode.ERROR, message: error instanceof Error ? error.name : "Error" });
      throw error;
    } finally {
      span.end();
    }
  });
}
