import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { CreateStateMachineCommand, type SFNClient, type StateMachineType } from "@aws-sdk/client-sfn";
import type { Json, ReadRequest, RunState, RunStatus, StartedRun, WorkflowAdapter } from "@taskferry/core";
import { expect, vi } from "vitest";

/** One per call, as core gives them. */
export function newSignal(): AbortSignal {
  return new AbortController().signal;
}

/** A start key as core draws it. */
export function newKey(): string {
  return `k${randomBytes(13).toString("hex").slice(0, 25)}`;
}

/** The definition of a machine in `fixtures/`, with its `${placeholders}` filled in. */
export function fixture(name: string, values: Readonly<Record<string, string>> = {}): string {
  const text = readFileSync(new URL(`./fixtures/${name}.asl.json`, import.meta.url), "utf8");
  return text.replace(/\$\{(\w+)\}/g, (_all, key: string) => values[key] ?? "");
}

export async function createMachine(
  client: SFNClient,
  definition: string,
  options: {
    readonly name?: string;
    readonly type?: StateMachineType;
    readonly tags?: Record<string, string>;
  } = {},
): Promise<string> {
  const { name = `machine-${newKey()}`, type = "STANDARD", tags = {} } = options;
  const { stateMachineArn = "" } = await client.send(
    new CreateStateMachineCommand({
      name,
      definition,
      type,
      roleArn: "arn:aws:iam::123456789012:role/states",
      tags: Object.entries(tags).map(([key, value]) => ({ key, value })),
    }),
  );
  return stateMachineArn;
}

/** A run as core drives it: its ref goes through JSON, and a better one replaces it. */
export class Run {
  ref: Json;

  constructor(
    private readonly adapter: WorkflowAdapter,
    readonly key: string,
    readonly started: StartedRun,
  ) {
    this.ref = JSON.parse(JSON.stringify(started.ref)) as Json;
  }

  static async start(adapter: WorkflowAdapter, input: Json, key = newKey(), retry = false): Promise<Run> {
    return new Run(adapter, key, await adapter.start({ key, input, retry, signal: newSignal() }));
  }

  /** The same run in a new process. */
  with(adapter: WorkflowAdapter): Run {
    return new Run(adapter, this.key, { ref: this.ref });
  }

  async read(request: Partial<ReadRequest> = {}): Promise<RunState> {
    const defaults = { key: this.key, ageMs: 0, signal: newSignal(), isClaimed: async () => false };
    const state = await this.adapter.read(this.ref, { ...defaults, ...request });
    expect(JSON.parse(JSON.stringify(state))).toEqual(state);
    if (state.ref !== undefined) this.ref = JSON.parse(JSON.stringify(state.ref)) as Json;
    return state;
  }

  until(status: RunStatus, check: (state: RunState) => void = () => undefined): Promise<RunState> {
    return vi.waitFor(
      async () => {
        const state = await this.read();
        expect(state).toMatchObject({ status });
        check(state);
        return state;
      },
      { timeout: 20_000, interval: 50 },
    );
  }

  async stop(): Promise<void> {
    await this.adapter.stop?.(this.ref, { signal: newSignal(), stopsSent: 0, requestedAgoMs: 0 });
  }

  async answer(key: string, content?: Record<string, Json>): Promise<void> {
    const answer =
      content === undefined ? { action: "decline" as const } : { action: "accept" as const, content };
    await this.adapter.answer?.(this.ref, key, answer, { signal: newSignal() });
  }

  find(startedAtMs = Date.now()): Promise<StartedRun | undefined> {
    const request = {
      key: this.key,
      input: {},
      startedAtMs,
      lastStartedAtMs: startedAtMs,
      signal: newSignal(),
      isClaimed: async () => false,
    };
    return this.adapter.find?.(request) ?? Promise.resolve(undefined);
  }
}
