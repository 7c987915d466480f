/**
 * The supervisor of one run: a program of its own, `node supervisor.js <run directory>`. It claims the order, runs the
 * command, spools its output, keeps its limits and records its end. It needs nothing of the server that started it,
 * and imports nothing but Node and its neighbours, because there is one of it for every run.
 */
import { mkdirSync, readFileSync, writeFileSync, writeSync } from "node:fs";
import path from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type Command, runCommand } from "./command.js";
import { exists, writeOnce, writeSwiftly, writeWhole } from "./files.js";
import { identify } from "./process-identity.js";
import {
  type Claim,
  type ClaimOutcome,
  type CommandRecord,
  type Ending,
  type EndRecord,
  FILES,
  type RunSpec,
} from "./records.js";
import { Spool } from "./spool.js";

/** `setTimeout` counts in 32 bits, time limits do not. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;
const GROUP_POLL_MS = 20;
const RECORD_TRIES = 600;
const RECORD_AGAIN_MS = 1000;

class Supervisor {
  readonly #spec: RunSpec;
  #command: Command | undefined;
  /** Why the command is being ended by us. The first reason is the one that is told. */
  #cause: "stopped" | "timed out" | undefined;
  #killAt = Number.POSITIVE_INFINITY;

  constructor(
    private readonly directory: string,
    private readonly env: Readonly<Record<string, string>>,
  ) {
    this.#spec = JSON.parse(readFileSync(this.#file("run"), "utf8")) as RunSpec;
  }

  async run(): Promise<void> {
    // Before the claim, which tells the world our pid: an unhandled SIGUSR2 would kill us.
    process.on("SIGUSR2", () => void this.#heedStop());
    // The machine shuts down, or somebody means the command: pass it on, and tell what became of it.
    for (const name of ["SIGTERM", "SIGINT"] as const) process.on(name, () => this.#terminate(name));
    process.on("SIGHUP", () => {});

    if (!this.#claim()) return tell("taken");
    tell("claimed");
    if (await exists(this.#file("stop"))) return this.#record({ how: "stopped" });

    const spool = new Spool(this.directory, this.#spec);
    const ending = await this.#execute(spool);
    await this.#record(ending, spool.end());
  }

  /** After an error of our own: nothing would read the command's output or record its end. */
  abandon(): void {
    this.#command?.signal("SIGKILL");
  }

  async #execute(spool: Spool): Promise<Ending> {
    const { argv, cwd, input } = this.#spec;
    this.#prepareQuestions();
    const started = await runCommand({
      argv,
      cwd,
      env: { ...this.env, ...this.#protocolEnv() },
      directory: this.directory,
      stdin: input === "stdin" ? this.#file("input") : undefined,
      onOutput: (name, chunk) => spool.take(name, chunk),
    });
    if ("how" in started) return started;
    this.#command = started;
    // One that has ended already has no start time any more, and needs none: nobody will look for it.
    const identity = identify(started.pid) ?? { pid: started.pid, began: "" };
    const record: CommandRecord = { ...identity, startedAtMs: Date.now() };
    // At once: killed before this is written, we would leave a command that nobody can name.
    writeSwiftly(this.#file("command"), JSON.stringify(record));
    this.#startClock();
    // A stop that came before there was anything to signal.
    await this.#heedStop();

    const ending = await started.ended;
    this.#command = undefined;
    if (this.#killAt < Number.POSITIVE_INFINITY) await this.#endGroup(started);
    await started.drained();
    return this.#cause === undefined ? ending : { how: this.#cause };
  }

  #claim(): boolean {
    const identity = identify(process.pid) ?? { pid: process.pid, began: "" };
    const claim: Claim = { ...identity, claimedAtMs: Date.now() };
    return writeOnce(this.#file("claim"), JSON.stringify(claim));
  }

  async #heedStop(): Promise<void> {
    if (this.#command === undefined || !(await exists(this.#file("stop")))) return;
    // A command that has just ended by itself is not stopped, it only waits to be reaped.
    if (this.#command === undefined || identify(this.#command.pid) === undefined) return;
    this.#cause ??= "stopped";
    this.#terminate("SIGTERM");
  }

  #startClock(): void {
    const { timeLimitMs } = this.#spec;
    if (timeLimitMs === null) return;
    const deadline = performance.now() + timeLimitMs;
    const tick = () => {
      const left = deadline - performance.now();
      if (left > 0) setTimeout(tick, Math.min(Math.ceil(left), LONGEST_TIMER_MS));
      else if (this.#command !== undefined && identify(this.#command.pid) !== undefined) {
        this.#cause ??= "timed out";
        this.#terminate("SIGTERM");
      }
    };
    tick();
  }

  #terminate(name: NodeJS.Signals): void {
    const command = this.#command;
    if (command === undefined || this.#killAt < Number.POSITIVE_INFINITY) return;
    this.#killAt = performance.now() + this.#spec.graceMs;
    command.signal(name);
    setTimeout(() => this.#command?.signal("SIGKILL"), Math.min(this.#spec.graceMs, LONGEST_TIMER_MS));
  }

  /** What the command leaves behind when it is told to end gets the rest of the grace period, then SIGKILL. */
  async #endGroup(command: Command): Promise<void> {
    while (command.signal(0)) {
      if (performance.now() >= this.#killAt) {
        command.signal("SIGKILL");
        return;
      }
      await delay(GROUP_POLL_MS);
    }
  }

  #prepareQuestions(): void {
    for (const name of ["questions", "answers"] as const) mkdirSync(this.#file(name), { mode: 0o700 });
    const helper = fileURLToPath(new URL("./ask.js", import.meta.url));
    const script = `#!/bin/sh\nexec ${quote(process.execPath)} ${quote(helper)} "$@"\n`;
    writeFileSync(this.#file("ask"), script, { mode: 0o700, flag: "wx" });
  }

  #protocolEnv(): Record<string, string> {
    return {
      TASKFERRY_KEY: path.basename(this.directory),
      TASKFERRY_ASK: this.#file("ask"),
      TASKFERRY_QUESTIONS: this.#file("questions"),
      TASKFERRY_ANSWERS: this.#file("answers"),
      TASKFERRY_PROGRESS: this.#file("progress"),
      ...(this.#spec.input === "file" && { TASKFERRY_INPUT: this.#file("input") }),
    };
  }

  async #record(ending: Ending, output?: Pick<EndRecord, "stdout" | "stderr" | "lastLine">): Promise<void> {
    const silent = { text: "", bytes: 0 };
    const end: EndRecord = {
      ending,
      endedAtMs: Date.now(),
      ...(output ?? { stdout: silent, stderr: silent, lastLine: "" }),
    };
    // A full disk is often full for a while only, and an exit status cannot be had twice.
    for (let tries = 1; ; tries++) {
      try {
        return writeWhole(this.#file("end"), JSON.stringify(end));
      } catch (error) {
        if (tries === RECORD_TRIES) throw error;
        await delay(RECORD_AGAIN_MS);
      }
    }
  }

  #file(name: keyof typeof FILES): string {
    return path.join(this.directory, FILES[name]);
  }
}

/** Written at once, so that the starter hears it even if this process ends next. It may be gone itself by then. */
function tell(outcome: ClaimOutcome): void {
  try {
    writeSync(1, `${outcome}\n`);
  } catch {
    // Nobody listens any more.
  }
}

function quote(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}

async function main(): Promise<void> {
  const directory = process.argv[2];
  if (directory === undefined) throw new Error("usage: supervisor.js <run directory>");
  // Cut off in the middle when the starter dies: then this is no JSON, and nothing was claimed.
  const env = JSON.parse(await text(process.stdin)) as Record<string, string>;
  const supervisor = new Supervisor(directory, env);
  try {
    await supervisor.run();
  } catch (error) {
    supervisor.abandon();
    throw error;
  }
}

// Timers and pipes that grandchildren hold open must not keep this process.
main().then(
  () => process.exit(0),
  (error: unknown) => {
    console.error(error);
    process.exit(1);
  },
);
