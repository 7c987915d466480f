import { createHash } from "node:crypto";
import { GetActivityTaskCommand, SendTaskFailureCommand } from "@aws-sdk/client-sfn";
import type { JsonObject } from "@taskferry/core";
import { parseExecutionArn } from "./arn.js";
import type { SfnClient } from "./client.js";
import type { Heartbeats } from "./heartbeats.js";
import { parseJson } from "./outcome.js";
import { at, findText, type QuestionOptions } from "./question.js";

/** An activity whose tasks are questions. */
export interface ActivityOptions {
  readonly activityArn: string;
  /** Where the activity's input names its execution (`$$.Execution.Id`). @default any string that is an execution ARN */
  readonly executionPath?: string;
  /** The worker name in the history. @default "taskferry" */
  readonly workerName?: string;
  /**
   * How long a task of an execution that nobody asks for is kept alive, in milliseconds. After that it is left to its
   * heartbeat timeout.
   * @default 600000
   */
  readonly holdMs?: number;
  /** Whether such a task is failed with `Taskferry.NotOurs` instead, so that the machine's Retry offers it again. @default false */
  readonly giveBack?: boolean;
}

/** A task that was taken from an activity. JSON: it is stored in the run's ref, the only place that outlives us. */
export interface HeldTask extends JsonObject {
  readonly token: string;
  readonly message: string | null;
  readonly schema: JsonObject | null;
}

/** How often a held task is kept alive when nobody says what its heartbeat is. */
const HEARTBEAT_SECONDS = 30;

/**
 * The tasks of one activity. GetActivityTask gives a task of any execution to whoever asks first, and gives each only
 * once. So what was taken is kept here under its execution's name, alive, until that execution is read and its ref,
 * with the task in it, comes back from the store.
 */
export class ActivityTasks {
  readonly #held = new Map<string, { readonly task: HeldTask; readonly until: number }[]>();
  readonly #closing = new AbortController();
  #poll: Promise<void> | undefined;

  constructor(
    readonly options: ActivityOptions,
    private readonly question: QuestionOptions,
    private readonly client: () => SfnClient,
    private readonly heartbeats: Heartbeats,
  ) {}

  /** The tasks of an execution: those of its stored ref, and new ones. Each is asked whether it is still open. */
  async open(
    executionArn: string,
    stored: readonly HeldTask[],
    heartbeatSeconds = HEARTBEAT_SECONDS,
  ): Promise<HeldTask[]> {
    const kept = new Set(stored.map(({ token }) => token));
    // What came back in the ref is safe, so it need not be held any more.
    const fresh = (this.#held.get(executionArn) ?? []).filter(({ task }) => !kept.has(task.token));
    if (fresh.length > 0) this.#held.set(executionArn, fresh);
    else this.#held.delete(executionArn);
    const tasks = [...stored, ...fresh.map(({ task }) => task)];
    const open = await Promise.all(
      tasks.map(({ token }) => this.heartbeats.keep(token, Math.min(heartbeatSeconds, HEARTBEAT_SECONDS))),
    );
    return tasks.filter((_task, index) => open[index]);
  }

  /** Asks the activity for a task, one poll at a time, and waits a little for the answer. */
  async take(waitMs: number): Promise<void> {
    this.#dropStrangers();
    this.#poll ??= this.#takeOne().finally(() => {
      this.#poll = undefined;
    });
    let timer: NodeJS.Timeout | undefined;
    await Promise.race([
      this.#poll,
      new Promise<void>((resolve) => {
        timer = setTimeout(resolve, waitMs);
      }),
    ]);
    clearTimeout(timer);
  }

  close(): void {
    this.#closing.abort();
  }

  /** Never rejects: the next read polls again. */
  async #takeOne(): Promise<void> {
    const { activityArn, workerName = "taskferry", holdMs = 600_000 } = this.options;
    try {
      const { taskToken: token, input = "" } = await this.client().send(
        new GetActivityTaskCommand({ activityArn, workerName }),
        // Not the read's signal: a poll that is cut off may have been given a task already.
        { abortSignal: this.#closing.signal },
      );
      if (token === undefined || token === "") return;
      const parameters = parseJson(input);
      const { executionPath } = this.options;
      const found =
        executionPath === undefined
          ? /"(arn:[^"]+:execution:[^"]+)"/.exec(input)?.[1]
          : at(parameters, executionPath);
      const { message, schema } = findText(parameters, parameters, this.question);
      const task = { token, message: message ?? null, schema: schema ?? null };
      if (parseExecutionArn(found) === undefined) return await this.#refuse(token);
      const held = this.#held.get(found as string) ?? [];
      this.#held.set(found as string, [...held, { task, until: Date.now() + holdMs }]);
      await this.heartbeats.keep(token, HEARTBEAT_SECONDS);
    } catch {
      // Throttled, closed, no network.
    }
  }

  #dropStrangers(): void {
    for (const [arn, tasks] of this.#held) {
      const strangers = tasks.filter(({ until }) => until < Date.now());
      for (const { task } of strangers) void this.#refuse(task.token).catch(() => undefined);
      if (strangers.length === tasks.length) this.#held.delete(arn);
      else
        this.#held.set(
          arn,
          tasks.filter((held) => !strangers.includes(held)),
        );
    }
  }

  async #refuse(token: string): Promise<void> {
    this.heartbeats.release(token);
    if (this.options.giveBack !== true) return;
    const cause = "The worker that took this activity task has no task for its execution.";
    await this.client().send(
      new SendTaskFailureCommand({ taskToken: token, error: "Taskferry.NotOurs", cause }),
    );
  }
}

/** A question's key must not show the token. */
export function activityKey(task: HeldTask): string {
  return `activity-${createHash("sha256").update(task.token).digest("hex").slice(0, 32)}`;
}
