/** What operators see: log lines, metrics, traces. Never arguments, results or secrets. */
import { hash } from "node:crypto";
import {
  type Attributes,
  context,
  type Meter,
  type MeterProvider,
  metrics,
  propagation,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from "@opentelemetry/api";
import { isWorkflowError } from "../contract/errors.js";
import type { Task } from "../contract/task.js";

/** A pino-shaped logger. On stdio it must not write to stdout: that belongs to the protocol. */
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
  return hash("sha256", id, "hex").slice(0, 12);
}

/** A metric, as it is registered and documented. Attributes are names of engines and words of Taskferry: never of clients. */
interface Metric {
  readonly name: string;
  readonly kind: "counter" | "histogram" | "gauge";
  /** In UCUM, as OpenTelemetry wants it. */
  readonly unit: string;
  readonly attributes: readonly string[];
  readonly description: string;
}

/** Every metric there is: `docs/observability.md` is held against this table. */
export const METRICS = {
  created: {
    name: "taskferry.tasks.created",
    kind: "counter",
    unit: "{task}",
    attributes: ["engine", "generation"],
    description: "Tasks created",
  },
  ended: {
    name: "taskferry.tasks.ended",
    kind: "counter",
    unit: "{task}",
    attributes: ["engine", "status"],
    description: "Tasks that reached a terminal status",
  },
  tasks: {
    name: "taskferry.tasks",
    kind: "gauge",
    unit: "{task}",
    attributes: ["engine", "status"],
    description: "Tasks that are stored, in the whole database",
  },
  startLatency: {
    name: "taskferry.start.latency",
    kind: "histogram",
    unit: "ms",
    attributes: ["engine"],
    description: "Row written to run bound",
  },
  nativeCalls: {
    name: "taskferry.native.calls",
    kind: "counter",
    unit: "{call}",
    attributes: ["engine", "operation", "verdict"],
    description: "Calls to engines",
  },
  nativeDuration: {
    name: "taskferry.native.duration",
    kind: "histogram",
    unit: "ms",
    attributes: ["engine", "operation", "verdict"],
    description: "How long calls to engines took",
  },
  polls: {
    name: "taskferry.polls",
    kind: "counter",
    unit: "{poll}",
    attributes: ["answer"],
    description: "Polls, by what they were answered from: all but `read` were coalesced",
  },
  excessivePolls: {
    name: "taskferry.polls.excessive",
    kind: "counter",
    unit: "{poll}",
    attributes: [],
    description: "Polls of owners who ask for a task far more often than they were told to",
  },
  failedLookups: {
    name: "taskferry.lookups.failed",
    kind: "counter",
    unit: "{lookup}",
    attributes: [],
    description: "Look-ups of tasks that are not there",
  },
  limitHits: {
    name: "taskferry.limits.hits",
    kind: "counter",
    unit: "{request}",
    attributes: ["limit"],
    description: "Requests refused by a limit",
  },
  owedCancels: {
    name: "taskferry.cancels.owed",
    kind: "gauge",
    unit: "{cancel}",
    attributes: ["engine"],
    description: "Cancels that no engine has confirmed yet, in the whole database",
  },
  oldestOwedCancel: {
    name: "taskferry.cancels.oldest",
    kind: "gauge",
    unit: "ms",
    attributes: ["engine"],
    description: "Age of the oldest cancel that is owed",
  },
} as const satisfies Readonly<Record<string, Metric>>;

type MetricKey = keyof typeof METRICS;
/** What a metric is measured by; every attribute, each time, so that series can be added up. */
export type MetricAttributes<Key extends MetricKey> = Readonly<
  Record<(typeof METRICS)[Key]["attributes"][number], string>
>;

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

function counter<Key extends MetricKey>(key: Key) {
  const { name, unit, description } = METRICS[key];
  const instrument = late((meter) => meter.createCounter(name, { unit, description }));
  return { add: (value: number, attributes: MetricAttributes<Key>) => instrument().add(value, attributes) };
}

function histogram<Key extends MetricKey>(key: Key) {
  const { name, unit, description } = METRICS[key];
  const instrument = late((meter) => meter.createHistogram(name, { unit, description }));
  return {
    record: (value: number, attributes: MetricAttributes<Key>) => instrument().record(value, attributes),
  };
}

/**
 * Counters and histograms, through the OpenTelemetry API: next to free of cost until the host installs an SDK. The
 * gauges are `gauges.ts`'s.
 */
export const counters = {
  created: counter("created"),
  ended: counter("ended"),
  startLatency: histogram("startLatency"),
  nativeCalls: counter("nativeCalls"),
  nativeDuration: histogram("nativeDuration"),
  polls: counter("polls"),
  excessivePolls: counter("excessivePolls"),
  failedLookups: counter("failedLookups"),
  limitHits: counter("limitHits"),
} as const;

/** What is told to the audit, in the field `audit` of a log line. `docs/observability.md` has the schema. */
export type AuditEvent =
  | "task.created"
  | "task.ended"
  | "task.deleted"
  | "task.cancelled"
  | "cancel.requested"
  | "result.answered"
  | "result.retrieved";

/** An audit line (SEP-1686, 8.3): who, what, which task; never what was said. */
export function audit(
  log: Logger,
  event: AuditEvent,
  task: Pick<Task, "owner" | "taskId" | "workflow">,
  more: Readonly<Record<string, string>> = {},
): void {
  // Hashing ids for a log that nobody keeps would be a good part of what a task costs.
  if (log === SILENT) return;
  const { owner, taskId, workflow } = task;
  log.info({ audit: event, owner: idForLog(owner), task: idForLog(taskId), workflow, ...more }, event);
}

/** Counts a task that has just ended, and writes it into the audit. */
export function noteEnd(log: Logger, task: Task): void {
  const { engine, status } = task;
  counters.ended.add(1, { engine, status });
  audit(log, "task.ended", task, { status });
}

/** Spans below a request, each with the `taskferry.*` attributes that it may carry. */
export const SPANS = {
  "taskferry.create": ["taskferry.workflow", "taskferry.task"],
  "taskferry.get": ["taskferry.task"],
  "taskferry.answer": ["taskferry.task"],
  "taskferry.cancel": ["taskferry.task"],
  "taskferry.remove": ["taskferry.task"],
  "taskferry.receive": ["taskferry.workflow"],
  "taskferry.work": ["taskferry.task", "taskferry.workflow", "taskferry.engine", "taskferry.reason"],
  "taskferry.engine.start": ["taskferry.task", "taskferry.engine", "taskferry.run"],
  "taskferry.engine.find": ["taskferry.task", "taskferry.engine", "taskferry.run"],
  "taskferry.engine.read": ["taskferry.task", "taskferry.engine", "taskferry.run"],
  "taskferry.engine.stop": ["taskferry.task", "taskferry.engine", "taskferry.run"],
  "taskferry.engine.answer": ["taskferry.task", "taskferry.engine", "taskferry.run"],
} as const;

const tracer = trace.getTracer("taskferry");

/**
 * Runs `work` in a span; an error is recorded by its name, since messages may quote what clients sent.
 * @param attributes asked for only if somebody records: polls are many, and hashing their ids is not free
 */
export function traced<T>(
  name: keyof typeof SPANS,
  attributes: () => Attributes,
  work: (span: Span) => Promise<T>,
): Promise<T> {
  return tracer.startActiveSpan(name, (span) => {
    if (span.isRecording()) span.setAttributes(attributes());
    return settle(span, work);
  });
}

/**
 * Runs the answering of a request in a span of its own, named and described as OpenTelemetry's conventions for MCP want
 * it. A client that sends its trace along (`traceparent` in `_meta`) finds the request, and the engine's calls, in it.
 */
export function tracedRequest<T>(method: string, meta: unknown, work: () => Promise<T>): Promise<T> {
  const options = { kind: SpanKind.SERVER, attributes: { "mcp.method.name": method } };
  return tracer.startActiveSpan(method, options, parentOf(meta), (span) => settle(span, work));
}

function parentOf(meta: unknown) {
  const here = context.active();
  const { traceparent, tracestate } = (meta ?? {}) as Readonly<Record<string, unknown>>;
  if (typeof traceparent !== "string") return here;
  // No baggage: what a stranger sends along must not spread to the engines.
  const carrier = { traceparent, ...(typeof tracestate === "string" && { tracestate }) };
  return propagation.extract(here, carrier);
}

async function settle<T>(span: Span, work: (span: Span) => Promise<T>): Promise<T> {
  try {
    return await work(span);
  } catch (error) {
    const type = isWorkflowError(error) ? error.code : error instanceof Error ? error.name : "Error";
    span.setAttribute("error.type", type);
    span.setStatus({ code: SpanStatusCode.ERROR, message: type });
    throw error;
  } finally {
    span.end();
  }
}
