/** What is in the database as a whole: counted for gauges, and looked at for cancels that no engine confirms. */
import { type BatchObservableResult, type MeterProvider, metrics, type Observable } from "@opentelemetry/api";
import type { TaskStatus } from "../contract/task.js";
import type { TaskStore } from "../store/task-store.js";
import { type Logger, METRICS } from "./observe.js";

/** However often metrics are collected, the database counts no more often than this. */
const SAMPLE_MS = 15_000;
/** … and at most for this part of the time: the count walks through an index, and SQLite does it on the event loop. */
const SHARE_OF_TIME = 1 / 100;
const WARN_EVERY_MS = 60_000;
/** Engines that take their time to stop a run (a machine has to be told) have done it by then. */
const LONG_OWED_MS = 600_000;

const STATUSES: readonly TaskStatus[] = [
  "submitted",
  "working",
  "input_required",
  "completed",
  "failed",
  "cancelled",
  "unknown",
];

export interface TaskGaugesOptions {
  readonly store: Pick<TaskStore, "countByStatus" | "owedCancels">;
  /** The engines that are served: what they have none of is told as 0. */
  readonly engines: readonly string[];
  readonly log: Logger;
}

/** One count of everything. */
interface Counts {
  readonly tasks: Awaited<ReturnType<TaskStore["countByStatus"]>>;
  readonly owed: Awaited<ReturnType<TaskStore["owedCancels"]>>;
}

export class TaskGauges {
  private provider: MeterProvider | undefined;
  private unregister: () => void = () => {};
  private sampled: Promise<Counts> | undefined;
  private sampleAgainAt = 0;
  private warnAgainAt = 0;

  constructor(private readonly options: TaskGaugesOptions) {}

  /** Called now and then: finds an OpenTelemetry SDK that was installed meanwhile, and warns. @throws what the store throws */
  async tick(): Promise<void> {
    this.register();
    const now = Date.now();
    if (now < this.warnAgainAt) return;
    this.warnAgainAt = now + WARN_EVERY_MS;
    for (const { engine, count, oldestAt } of await this.options.store.owedCancels()) {
      const oldestMs = now - oldestAt;
      if (oldestMs >= LONG_OWED_MS)
        this.options.log.warn({ engine, owed: count, oldestMs }, "cancel.long_owed");
    }
  }

  close(): void {
    this.unregister();
    this.unregister = () => {};
    this.provider = undefined;
  }

  private register(): void {
    const provider = metrics.getMeterProvider();
    if (provider === this.provider) return;
    this.close();
    this.provider = provider;
    const meter = provider.getMeter("taskferry");
    const gauge = ({
      name,
      unit,
      description,
    }: (typeof METRICS)["tasks" | "owedCancels" | "oldestOwedCancel"]) =>
      meter.createObservableGauge(name, { unit, description });
    const gauges = {
      tasks: gauge(METRICS.tasks),
      owed: gauge(METRICS.owedCancels),
      oldest: gauge(METRICS.oldestOwedCancel),
    };
    const all: Observable[] = Object.values(gauges);
    const observe = async (result: BatchObservableResult) => {
      // A database that is away leaves a gap in the series: the store says elsewhere what is wrong with it.
      const counts = await this.sample().catch(() => undefined);
      if (counts === undefined) return;
      const now = Date.now();
      for (const [engine, byStatus] of this.byEngine(counts.tasks))
        for (const [status, count] of byStatus) result.observe(gauges.tasks, count, { engine, status });
      const owed = new Map(counts.owed.map((each) => [each.engine, each]));
      for (const engine of new Set([...this.options.engines, ...owed.keys()])) {
        const { count = 0, oldestAt = now } = owed.get(engine) ?? {};
        result.observe(gauges.owed, count, { engine });
        result.observe(gauges.oldest, now - oldestAt, { engine });
      }
    };
    meter.addBatchObservableCallback(observe, all);
    this.unregister = () => meter.removeBatchObservableCallback(observe, all);
  }

  private byEngine(tasks: Counts["tasks"]): Map<string, Map<string, number>> {
    const none = () => new Map<string, number>(STATUSES.map((status) => [status, 0]));
    const all = new Map(this.options.engines.map((engine) => [engine, none()]));
    for (const { engine, status, count } of tasks) {
      const byStatus = all.get(engine) ?? none();
      all.set(engine, byStatus.set(status, count));
    }
    return all;
  }

  private sample(): Promise<Counts> {
    if (this.sampled !== undefined && Date.now() < this.sampleAgainAt) return this.sampled;
    // Until it is done nobody counts a second time.
    this.sampleAgainAt = Infinity;
    this.sampled = this.count();
    return this.sampled;
  }

  private async count(): Promise<Counts> {
    const began = performance.now();
    try {
      const [tasks, owed] = [
        await this.options.store.countByStatus(),
        await this.options.store.owedCancels(),
      ];
      return { tasks, owed };
    } finally {
      const tookMs = performance.now() - began;
      this.sampleAgainAt = Date.now() + Math.max(SAMPLE_MS, tookMs / SHARE_OF_TIME);
    }
  }
}
