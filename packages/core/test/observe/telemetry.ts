/** An OpenTelemetry SDK that keeps what it is given. Once per test file: a tracer stays with the first SDK it met. */
import { context, metrics, propagation, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { afterAll, beforeAll, beforeEach } from "vitest";
import type { Logger } from "../../src/index.js";

export interface Point {
  readonly name: string;
  readonly unit: string;
  readonly description: string;
  readonly attributes: Readonly<Record<string, unknown>>;
  /** A number; of a histogram, how many were recorded. */
  readonly value: number;
}

export interface Telemetry {
  /** Collects now. */
  points(): Promise<readonly Point[]>;
  /** The newest value of the series with exactly these attributes. */
  value(name: string, attributes?: Readonly<Record<string, string>>): Promise<number | undefined>;
  spans(): readonly ReadableSpan[];
  collect(): Promise<void>;
}

export function telemetry(): Telemetry {
  const metricExporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({
    exporter: metricExporter,
    exportIntervalMillis: 3_600_000,
  });
  const meters = new MeterProvider({ readers: [reader] });
  const spanExporter = new InMemorySpanExporter();
  const tracers = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spanExporter)] });
  beforeAll(() => {
    metrics.setGlobalMeterProvider(meters);
    trace.setGlobalTracerProvider(tracers);
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  });
  beforeEach(() => spanExporter.reset());
  afterAll(async () => {
    for (const api of [metrics, trace, context, propagation]) api.disable();
    await Promise.all([meters.shutdown(), tracers.shutdown()]);
  });
  const collect = () => meters.forceFlush();
  const points = async () => {
    metricExporter.reset();
    await collect();
    return metricExporter
      .getMetrics()
      .flatMap(({ scopeMetrics }) => scopeMetrics)
      .flatMap((scope) => scope.metrics)
      .flatMap(({ descriptor: { name, unit, description }, dataPoints }) =>
        dataPoints.map(({ attributes, value }) => ({
          name,
          unit,
          description,
          attributes,
          value: typeof value === "number" ? value : value.count,
        })),
      );
  };
  return {
    points,
    collect,
    spans: () => spanExporter.getFinishedSpans(),
    async value(name, attributes = {}) {
      const wanted = JSON.stringify(Object.entries(attributes).sort());
      const same = (point: Point) => JSON.stringify(Object.entries(point.attributes).sort()) === wanted;
      return (await points()).find((point) => point.name === name && same(point))?.value;
    },
  };
}

/** A logger that remembers. */
export function recorder() {
  const lines: { level: string; fields: Record<string, unknown>; message: string }[] = [];
  const at = (level: string) => (fields: object, message: string) =>
    void lines.push({ level, fields: fields as Record<string, unknown>, message });
  const log: Logger = { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
  const warned = (message: string) =>
    lines.filter((line) => line.level === "warn" && line.message === message).map(({ fields }) => fields);
  return { log, lines, warned };
}
