/** Real runs in a state directory of their own, gone after each test together with every process in them. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import {
  type ErrorVerdict,
  isEngineError,
  type Json,
  type RunState,
  type WorkflowAdapter,
} from "@taskferry/core";
import { expect, onTestFinished, vi } from "vitest";
import { type LocalProcessOptions, localProcess } from "../src/index.js";

export const signal: AbortSignal = new AbortController().signal;
export const ENDED = ["completed", "failed", "cancelled", "unknown"];

const WAIT = { timeout: 20_000, interval: 15 };

/** Tries until the assertion holds. */
export function eventually<Value>(attempt: () => Value | Promise<Value>): Promise<Value> {
  return vi.waitFor(attempt, WAIT);
}

export async function temporaryDirectory(): Promise<string> {
  const directory = await mkdtemp(path.join(os.tmpdir(), "taskferry-process-"));
  onTestFinished(async () => {
    killRunsIn(directory);
    await eventually(() => rm(directory, { recursive: true, force: true }));
  });
  return directory;
}

/** Ends what a test left behind. A supervisor is halted first, or it would start its command just now. */
export function killRunsIn(stateDir: string): void {
  const names = statSync(stateDir).isDirectory() ? readdirSync(stateDir) : [];
  for (const name of names) {
    const supervisor = pidIn(path.join(stateDir, name, "claim.json"));
    if (supervisor !== undefined && isRunning(supervisor)) {
      process.kill(supervisor, "SIGSTOP");
      for (const child of childrenOf(supervisor)) kill(-child);
      kill(supervisor);
    }
    const command = pidIn(path.join(stateDir, name, "command.json"));
    if (command !== undefined) kill(-command);
  }
}

function pidIn(file: string): number | undefined {
  try {
    return (JSON.parse(readFileSync(file, "utf8")) as { pid: number }).pid;
  } catch {
    return undefined;
  }
}

function childrenOf(pid: number): number[] {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8");
    return children.trim().split(" ").filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended.
  }
}

export class Run {
  constructor(
    readonly adapter: WorkflowAdapter,
    readonly stateDir: string,
    readonly key: string,
  ) {}

  get ref(): Json {
    return { key: this.key };
  }

  file(name: string): string {
    return path.join(this.stateDir, this.key, name);
  }

  record(name: string): Record<string, Json> {
    return JSON.parse(readFileSync(this.file(name), "utf8")) as Record<string, Json>;
  }

  /** The pid in `claim.json` (the supervisor) or `command.json`, once it is there. */
  pid(name: "claim" | "command"): Promise<number> {
    return eventually(() => this.record(`${name}.json`)["pid"] as number);
  }

  read(ageMs = 0): Promise<RunState> {
    return this.adapter.read(this.ref, { key: this.key, ageMs, signal, isClaimed: async () => false });
  }

  stop(): Promise<void> {
    return this.adapter.stop?.(this.ref, { signal, stopsSent: 0, requestedAgoMs: 0 }) as Promise<void>;
  }

  answer(questionKey: string, content?: Record<string, Json>): Promise<void> {
    const answer = { action: "accept", ...(content && { content }) } as const;
    return this.adapter.answer?.(this.ref, questionKey, answer, { signal }) as Promise<void>;
  }

  until(test: (state: RunState) => void): Promise<RunState> {
    return eventually(async () => {
      const state = await this.read();
      test(state);
      return state;
    });
  }

  untilEnded(): Promise<RunState> {
    return this.until((state) => expect(ENDED).toContain(state.status));
  }

  untilMessage(message: string): Promise<RunState> {
    return this.until((state) => expect(state.message).toBe(message));
  }

  async wholeLog(): Promise<string> {
    let text = "";
    for (let cursor: string | undefined; ; ) {
      const page = await this.adapter.logs?.(this.ref, cursor, { signal });
      if (page === undefined) throw new Error("no logs");
      text += page.text;
      if (page.cursor === undefined) return text;
      cursor = page.cursor;
    }
  }
}

let drawn = 0;

export function newKey(): string {
  return `${process.pid.toString(36)}${Date.now().toString(36)}${(drawn++).toString(36)}`.padEnd(26, "0");
}

export async function started(options: LocalProcessOptions, input: Json = {}, key = newKey()): Promise<Run> {
  const stateDir = options.stateDir ?? (await temporaryDirectory());
  const adapter = localProcess({ ...options, stateDir });
  await adapter.start({ key, input, retry: false, signal: new AbortController().signal });
  return new Run(adapter, stateDir, key);
}

/** A run of a shell script. */
export function sh(script: string, options: Partial<LocalProcessOptions> = {}): Promise<Run> {
  return started({ command: ["sh", "-c", script], ...options });
}

/** A run of a Node script. */
export function node(script: string, options: Partial<LocalProcessOptions> = {}): Promise<Run> {
  return started({ command: [process.execPath, "-e", script], ...options });
}

export async function verdictOf(call: Promise<unknown>): Promise<ErrorVerdict> {
  const error: unknown = await call.then(
    () => expect.fail("must throw"),
    (thrown: unknown) => thrown,
  );
  return isEngineError(error) ? error.verdict : expect.fail(String(error));
}

/** Whether a process is there and more than a zombie. */
export function isRunning(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return !/^[ZX]/.test(stat.slice(stat.lastIndexOf(")") + 2));
  } catch {
    return false;
  }
}
