import { GetExecutionHistoryCommand, type HistoryEvent } from "@aws-sdk/client-sfn";
import type { RunProgress } from "@taskferry/core";
import type { SfnClient } from "./client.js";

/** A task or activity that the execution waits for. */
export interface PendingTask {
  /** `TaskScheduled` or `ActivityScheduled`. */
  readonly event: HistoryEvent;
  readonly state: string;
  readonly resource: string;
  readonly heartbeatSeconds: number | undefined;
}

/** How to read a history. */
export interface HistoryOptions {
  /** How many of the newest events are read at most. */
  readonly limit: number;
  /** Whether the events carry their data (parameters with task tokens, outputs). */
  readonly data?: boolean;
  /** Stop as soon as this event was read. */
  readonly upTo?: number;
  readonly signal: AbortSignal;
}

const IS_OPEN_TASK = /^(Task(Scheduled|Started|Submitted)|Activity(Scheduled|Started))$/;
const IS_OVER = /(Exited|Aborted|Succeeded|IterationFailed)$|^Execution/;
const CONTAINER_ENDS = /^(Parallel|Map)State(Succeeded|Failed|Aborted)$/;
const CONTAINER_STARTS = /^(Parallel|Map)StateStarted$/;
/** What fails by itself, not because something inside of it did. */
const IS_ROOT_FAILURE =
  /^(Task|Activity|LambdaFunction)\w*(Failed|TimedOut)$|^FailStateEntered$|^EvaluationFailed$/;

/** Reads the newest events, whether or not the engine heeds `reverseOrder` and `maxResults`. */
export async function readHistory(
  client: SfnClient,
  executionArn: string,
  { limit, data = false, upTo, signal }: HistoryOptions,
): Promise<History> {
  const events: HistoryEvent[] = [];
  let nextToken: string | undefined;
  do {
    const page = await client.send(
      new GetExecutionHistoryCommand({
        executionArn,
        reverseOrder: true,
        includeExecutionData: data,
        // With data an event may have 256 KB, so fewer at a time.
        maxResults: Math.min(limit, data ? 100 : 1000),
        ...(nextToken !== undefined && { nextToken }),
      }),
      { abortSignal: signal },
    );
    events.push(...(page.events ?? []));
    nextToken = page.nextToken;
  } while (nextToken !== undefined && events.length < limit && !events.some((event) => event.id === upTo));
  return new History(events);
}

/** A window on an execution's history. Its events are trees, one chain of `previousEventId` per branch. */
export class History {
  /** Oldest first. */
  readonly events: readonly HistoryEvent[];
  readonly #byId: ReadonlyMap<number, HistoryEvent>;

  constructor(events: readonly HistoryEvent[]) {
    this.events = [...events].sort((a, b) => idOf(a) - idOf(b));
    this.#byId = new Map(this.events.map((event) => [idOf(event), event]));
  }

  /** Where the execution is: one name, or several inside of Parallel and Map. */
  get currentStates(): readonly string[] {
    return this.#heads().flatMap((head) => this.stateOf(head) ?? []);
  }

  get pendingTasks(): readonly PendingTask[] {
    return this.#heads().flatMap((head) => {
      if (!IS_OPEN_TASK.test(head.type ?? "")) return [];
      const event = this.#chain(head).find(({ type }) => type?.endsWith("Scheduled"));
      const details = event?.taskScheduledEventDetails ?? event?.activityScheduledEventDetails;
      if (event === undefined || details === undefined) return [];
      const { resource = "", heartbeatInSeconds } = details;
      return [{ event, resource, state: this.stateOf(event) ?? "", heartbeatSeconds: heartbeatInSeconds }];
    });
  }

  /** How far the one inline Map is that runs now. */
  get mapProgress(): RunProgress | undefined {
    const ended = this.#endedContainers();
    const maps = this.events.filter(({ type, id }) => type === "MapStateStarted" && !ended.has(id ?? 0));
    const [map] = maps;
    const total = map?.mapStateStartedEventDetails?.length;
    if (map === undefined || maps.length > 1 || total === undefined || this.stateOf(map) === undefined)
      return undefined;
    const done = this.events.filter(
      (event) => event.type === "MapIterationSucceeded" && this.#chain(event).includes(map),
    ).length;
    return { done, total };
  }

  /** The state that a failure came from, at whatever depth. */
  get failedState(): string | undefined {
    const root = this.events.findLast(({ type }) => IS_ROOT_FAILURE.test(type ?? ""));
    if (root !== undefined) return root.evaluationFailedEventDetails?.state ?? this.stateOf(root);
    // An execution that timed out was simply somewhere.
    const end = this.events.findLast(({ type }) => /^Execution(Failed|TimedOut)$/.test(type ?? ""));
    const at = end && this.#byId.get(previous(end));
    return (at && this.stateOf(at)) ?? this.currentStates[0];
  }

  /** What became of a scheduled task. `undefined` while it is pending. */
  closingEvent(scheduled: number): HistoryEvent | undefined {
    return this.events.find(
      (event) =>
        /^(Task|Activity)(Succeeded|Failed|TimedOut)$/.test(event.type ?? "") &&
        this.#chain(event).find(({ type }) => type?.endsWith("Scheduled"))?.id === scheduled,
    );
  }

  /** The state that an event belongs to. */
  stateOf(event: HistoryEvent): string | undefined {
    return this.#chain(event).find(({ stateEnteredEventDetails }) => stateEnteredEventDetails !== undefined)
      ?.stateEnteredEventDetails?.name;
  }

  /** The event and its predecessors, as far as the window goes. */
  #chain(event: HistoryEvent): HistoryEvent[] {
    const chain: HistoryEvent[] = [];
    for (let at: HistoryEvent | undefined = event; at !== undefined; at = this.#byId.get(previous(at))) {
      chain.push(at);
    }
    return chain;
  }

  /** The last event of each branch that goes on. */
  #heads(): HistoryEvent[] {
    const followed = new Set(this.events.map(previous));
    const ended = this.#endedContainers();
    return this.events.filter((event) => {
      if (followed.has(idOf(event)) || IS_OVER.test(event.type ?? "")) return false;
      // A branch that was cut off has no end of its own: the Parallel or Map around it has.
      const chain = new Set(this.#chain(event).map(idOf));
      return [...ended].every(([start, end]) => !chain.has(start) || chain.has(end));
    });
  }

  /** From the event that started a Parallel or Map to the one that ended it. */
  #endedContainers(): Map<number, number> {
    const ended = new Map<number, number>();
    for (const end of this.events.filter(({ type }) => CONTAINER_ENDS.test(type ?? ""))) {
      let depth = 0;
      const start = this.#chain(end).find(({ type = "" }) => {
        if (CONTAINER_ENDS.test(type)) depth += 1;
        if (CONTAINER_STARTS.test(type)) depth -= 1;
        return depth === 0;
      });
      if (start !== undefined) ended.set(idOf(start), idOf(end));
    }
    return ended;
  }
}

function idOf(event: HistoryEvent): number {
  return event.id ?? 0;
}

/** Some emulators leave `previousEventId` out: without it, one event follows the other. */
function previous(event: HistoryEvent): number {
  return event.previousEventId ?? idOf(event) - 1;
}
