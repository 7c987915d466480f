/** A GitHub to test against, and the part that core would play. */
import { randomInt } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import {
  type ErrorVerdict,
  isEngineError,
  type Json,
  type RunRef,
  type RunState,
  type StartedRun,
  type WorkflowAdapter,
} from "@taskferry/core";
import { expect, onTestFinished } from "vitest";
import { ProtocolServer } from "../emulator/src/protocol-server.js";
import { type GitHubActionsOptions, githubActions } from "../src/index.js";

/** A workflow whose runs can be told by their name. */
export const CORRELATED = `
name: CI
run-name: CI \${{ inputs.taskferry_id }}
on:
  workflow_dispatch:
    inputs:
      taskferry_id: { type: string, required: false }
      suite: { type: choice, options: [unit, all], default: unit }
      dry_run: { type: boolean, default: false }
      retries: { type: number }
jobs: {}
`;

/** The same without a way to tell its runs. */
export const PLAIN = `
name: CI
on: { workflow_dispatch: { inputs: { suite: { type: string } } } }
jobs: {}
`;

export const CI = ".github/workflows/ci.yml";
export const TOKEN = "ghp_secretsecretsecretsecretsecretsecret";

/** A server that is checked and closed when the test is over. */
export async function gitHub(): Promise<ProtocolServer> {
  const server = await ProtocolServer.start();
  onTestFinished(async () => {
    await server.close();
    expect(server.problems).toEqual([]);
  });
  return server;
}

/** A server with one repository, `octo/hello`, that has one workflow, `ci.yml`. */
export async function hello(file = CORRELATED) {
  const server = await gitHub();
  const repository = server.state.repository("octo/hello", { files: { [CI]: file }, branches: ["topic"] });
  const options: GitHubActionsOptions = {
    baseUrl: server.url,
    auth: TOKEN,
    owner: "octo",
    repo: "hello",
    workflow: "ci.yml",
    ref: "main",
    batchWindowMs: 1,
    settleMs: 200,
  };
  const adapter = (more: Partial<GitHubActionsOptions> = {}) => githubActions({ ...options, ...more });
  return { server, state: server.state, repository, options, adapter };
}

/** A start key as core draws it. */
export function newKey(): string {
  return Array.from({ length: 26 }, () => randomInt(36).toString(36)).join("");
}

/** The tasks of one database: who has claimed what. */
export class Claims {
  readonly #holders = new Map<string, string>();

  isClaimedFor(key: string): (claim: string) => Promise<boolean> {
    return async (claim) => (this.#holders.get(claim) ?? key) !== key;
  }

  take(key: string, claim: string | undefined): boolean {
    if (claim === undefined) return true;
    if ((this.#holders.get(claim) ?? key) !== key) return false;
    this.#holders.set(claim, key);
    return true;
  }
}

/** One task: its key, its stored ref, and calls as core makes them. */
export class Task {
  readonly key: string;
  ref: RunRef | undefined;
  attempt: number | undefined;
  startedAtMs = Date.now();
  /** When the latest start was attempted, if it was not the first. */
  lastStartedAtMs: number | undefined;
  boundAtMs = Date.now();
  url: string | undefined;
  readonly signal = new AbortController().signal;

  constructor(
    readonly claims: Claims = new Claims(),
    key: string = newKey(),
  ) {
    this.key = key;
  }

  async start(adapter: WorkflowAdapter, input: Json = {}, retry = false): Promise<this> {
    this.startedAtMs = Date.now();
    this.bind(await adapter.start({ key: this.key, input, retry, signal: this.signal }));
    return this;
  }

  bind(started: StartedRun): void {
    if (!this.claims.take(this.key, started.claim)) throw new Error(`claimed: ${started.claim}`);
    this.ref = stored(started.ref);
    this.url = started.url;
    this.boundAtMs = Date.now();
  }

  find(adapter: WorkflowAdapter, input: Json = {}): Promise<StartedRun | undefined> {
    const isClaimed = this.claims.isClaimedFor(this.key);
    const { key, startedAtMs, lastStartedAtMs = startedAtMs, signal } = this;
    const request = { key, input, startedAtMs, lastStartedAtMs, signal, isClaimed };
    return adapter.find?.(request) ?? Promise.resolve(undefined);
  }

  async read(adapter: WorkflowAdapter): Promise<RunState> {
    const state = await adapter.read(this.ref as Json, {
      key: this.key,
      ageMs: Date.now() - this.boundAtMs,
      ...(this.attempt === undefined ? {} : { attempt: this.attempt }),
      isClaimed: this.claims.isClaimedFor(this.key),
      signal: this.signal,
    });
    // Whatever does not survive being stored is a bug, `undefined` included.
    expect(JSON.parse(JSON.stringify(state))).toStrictEqual(state);
    if (state.ref !== undefined && this.claims.take(this.key, state.claim)) this.ref = stored(state.ref);
    this.attempt ??= state.attempt;
    return state;
  }

  stop(adapter: WorkflowAdapter, requestedAgoMs = 0, stopsSent = 0): Promise<void> {
    const { signal } = this;
    return adapter.stop?.(this.ref as Json, { signal, requestedAgoMs, stopsSent }) ?? Promise.resolve();
  }

  /** Reads until the state is as wanted. */
  async until(adapter: WorkflowAdapter, wanted: (state: RunState) => boolean): Promise<RunState> {
    return eventually(async () => {
      const state = await this.read(adapter);
      expect(state).toSatisfy(wanted);
      return state;
    });
  }
}

/** What a ref is after it was stored. */
export function stored(ref: RunRef): RunRef {
  return JSON.parse(JSON.stringify(ref));
}

/** The error of a call, and what it means. Fails when the call goes through. */
export async function refusal(
  adapter: WorkflowAdapter,
  call: Promise<unknown>,
): Promise<ErrorVerdict & { readonly error: Error }> {
  const error = await call.then(
    () => expect.fail("the call went through"),
    (thrown: Error) => thrown,
  );
  const verdict = isEngineError(error) ? error.verdict : adapter.explain?.(error);
  return { ...(verdict ?? { kind: "ambiguous" }), error };
}

/** Tries until it does not fail, for five seconds at most unless said otherwise. */
export async function eventually<T>(attempt: () => Promise<T>, limitMs = 5000): Promise<T> {
  const deadline = Date.now() + limitMs;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (Date.now() > deadline) throw error;
      await delay(5);
    }
  }
}
