import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { localProcess } from "../src/index.js";
import { launchSupervisor } from "../src/launch.js";
import { publishRun } from "../src/run-directory.js";
import { eventually, isRunning, newKey, Run, sh, signal, started, temporaryDirectory } from "./harness.js";

const here = (name: string) => fileURLToPath(new URL(name, import.meta.url));

interface Starter {
  readonly output: string;
  readonly killed: boolean;
}

/** Starts a run from another process, which dies as told. */
function startElsewhere(
  options: object,
  key: string,
  death?: { at: number; when: string },
): Promise<Starter> {
  const preload = death === undefined ? [] : ["--import", here("./die-at.mjs")];
  const args = [...preload, here("./starter.mjs"), JSON.stringify(options), key];
  const env = { ...process.env, DIE_AT: String(death?.at), DIE_WHEN: death?.when };
  return new Promise((resolve) => {
    execFile(process.execPath, args, { env }, (error, stdout) =>
      resolve({ output: stdout, killed: error?.signal === "SIGKILL" }),
    );
  });
}

/** A command that leaves a line each time it is run. */
function countedCommand(directory: string) {
  const file = path.join(directory, "count");
  return {
    options: {
      command: ["sh", "-c", 'echo ran >> "$COUNT"; echo done'],
      env: { COUNT: file },
      stateDir: path.join(directory, "state"),
    },
    count: () => (existsSync(file) ? readFileSync(file, "utf8").trimEnd().split("\n").length : 0),
  };
}

describe("a starter that is killed", () => {
  it("before any step leaves a run that a second start runs exactly once", async () => {
    for (let at = 1, reached = true; reached; at++) {
      const { options, count } = countedCommand(await temporaryDirectory());
      const key = newKey();
      const first = await startElsewhere(options, key, { at, when: "before" });
      reached = first.killed;
      expect(first.output).toBe(reached ? `died before call ${at}\n` : "started\n");

      const adapter = localProcess(options);
      const { ref } = await adapter.start({ key, input: {}, retry: true, signal });
      expect(ref).toEqual({ key });
      const state = await new Run(adapter, options.stateDir, key).untilEnded();
      expect(state, `died before step ${at}`).toMatchObject({ native: "exited 0" });
      expect(count(), `died before step ${at}`).toBe(1);
      if (!reached) expect(at, "steps at which it was killed").toBeGreaterThan(10);
    }
  }, 120_000);

  it("after any step leaves a run that `find` brings to its end, or says is none", async () => {
    const found = new Set<boolean>();
    for (let at = 1, reached = true; reached; at++) {
      const { options, count } = countedCommand(await temporaryDirectory());
      const key = newKey();
      reached = (await startElsewhere(options, key, { at, when: "after" })).killed;
      const adapter = localProcess(options);
      const search = {
        key,
        input: {},
        startedAtMs: 0,
        lastStartedAtMs: 0,
        signal,
        isClaimed: async () => false,
      };
      const run = await adapter.find?.(search);
      found.add(run !== undefined);
      if (run !== undefined) await new Run(adapter, options.stateDir, key).untilEnded();
      expect(count(), `died after step ${at}`).toBe(run === undefined ? 0 : 1);
    }
    expect(found).toEqual(new Set([true, false]));
  }, 120_000);

  it("after the start takes nothing with it", async () => {
    const directory = await temporaryDirectory();
    const options = { command: ["sh", "-c", "echo up; sleep 0.3; echo down"], stateDir: directory };
    const key = newKey();
    expect((await startElsewhere(options, key)).output).toBe("started\n");
    expect((await new Run(localProcess(options), directory, key).untilEnded()).message).toBe("down");
  });
});

it("eight starters of one key at once run the command once", async () => {
  const { options, count } = countedCommand(await temporaryDirectory());
  const key = newKey();
  const starters = await Promise.all(Array.from({ length: 8 }, () => startElsewhere(options, key)));
  expect(starters.map((starter) => starter.output)).toEqual(Array(8).fill("started\n"));
  await new Run(localProcess(options), options.stateDir, key).untilEnded();
  expect(count()).toBe(1);
});

it("eight supervisors of one order at once: one takes it, the others leave in peace", async () => {
  const { options, count } = countedCommand(await temporaryDirectory());
  const { stateDir, command, env } = options;
  const key = newKey();
  const run = new Run(localProcess(options), stateDir, key);
  mkdirSync(stateDir, { mode: 0o700 });
  const limits = { timeLimitMs: null, graceMs: 0, maxOutputBytes: 1000, maxJsonBytes: 1000, tailBytes: 1000 };
  await publishRun(stateDir, key, { argv: command, cwd: "/", input: "arguments", ...limits }, undefined);
  const launches = Array.from({ length: 8 }, () =>
    launchSupervisor(
      run.file(""),
      { ...env, PATH: process.env["PATH"] as string },
      new AbortController().signal,
    ),
  );
  await Promise.all(launches);
  expect((await run.untilEnded()).native).toBe("exited 0");
  expect(count()).toBe(1);
  expect(readFileSync(run.file("supervisor.log"), "utf8")).toBe("");
});

it("a start that is aborted can be made again", async () => {
  const { options, count } = countedCommand(await temporaryDirectory());
  const adapter = localProcess(options);
  const key = newKey();
  const abort = new AbortController();
  const start = adapter.start({ key, input: {}, retry: false, signal: abort.signal });
  const aborted = expect(start).rejects.toThrow("deadline");
  const run = new Run(adapter, options.stateDir, key);
  await eventually(() => expect(existsSync(run.file("supervisor.log"))).toBe(true));
  abort.abort(new Error("deadline"));
  await aborted;
  await adapter.start({ key, input: {}, retry: true, signal });
  await run.untilEnded();
  expect(count()).toBe(1);
});

describe("a supervisor that is killed", () => {
  it("together with its command is a lost run, told as failed", async () => {
    const run = await sh("echo up; sleep 60");
    await run.untilMessage("up");
    process.kill(await run.pid("claim"), "SIGKILL");
    process.kill(-(await run.pid("command")), "SIGKILL");
    const state = await run.untilEnded();
    expect(state).toMatchObject({ native: "lost", status: "failed", failure: { code: "Lost" } });
    expect(state.failure?.links).toHaveLength(1);
    expect(await run.wholeLog()).toBe("up\n");
  });

  it("leaves a command that is told as going on, and can be stopped", async () => {
    const run = await sh("echo up; exec sleep 60", { graceMs: 10_000 });
    await run.untilMessage("up");
    process.kill(await run.pid("claim"), "SIGKILL");
    await run.until((state) => expect(state).toMatchObject({ native: "unsupervised", status: "working" }));
    await run.stop();
    expect(await run.untilEnded()).toMatchObject({ native: "lost", status: "failed" });
  });

  it("leaves a command whose SIGKILL later stops see to", async () => {
    const run = await sh("trap '' TERM; echo up; while :; do sleep 0.05; done", { graceMs: 100 });
    await run.untilMessage("up");
    process.kill(await run.pid("claim"), "SIGKILL");
    await run.until((state) => expect(state.native).toBe("unsupervised"));
    await eventually(async () => {
      await run.stop();
      expect((await run.read()).native).toBe("lost");
    });
    expect(isRunning(await run.pid("command"))).toBe(false);
  });

  it("leaves questions that nobody answers any more", async () => {
    const run = await sh(`echo '{"message":"?"}' > "$TASKFERRY_QUESTIONS/q.json"; exec sleep 60`);
    await run.until((state) => expect(state.status).toBe("input_required"));
    // The command asks by itself, perhaps before its pid is on record.
    await run.pid("command");
    process.kill(await run.pid("claim"), "SIGKILL");
    const state = await run.until((now) => expect(now.native).toBe("unsupervised"));
    expect(state.questions).toBeUndefined();
  });
});

it("a command that is killed is told with its signal", async () => {
  const run = await sh("echo up; sleep 60");
  await run.untilMessage("up");
  process.kill(await run.pid("command"), "SIGKILL");
  expect(await run.untilEnded()).toMatchObject({ native: "signalled SIGKILL", status: "completed" });
});

describe("a pid that the system uses again", () => {
  /** A run directory as a machine leaves it that went down: with the pids of processes that run now. */
  async function afterCrash(records: Record<string, object>): Promise<Run> {
    const stateDir = await temporaryDirectory();
    const run = new Run(localProcess({ command: ["true"], stateDir }), stateDir, newKey());
    mkdirSync(run.file(""));
    writeFileSync(run.file("run.json"), JSON.stringify({ argv: ["true"], graceMs: 0 }));
    for (const [name, record] of Object.entries(records))
      writeFileSync(run.file(name), JSON.stringify(record));
    return run;
  }

  it("is not taken for the supervisor or the command: the run is lost", async () => {
    const bystander = await sh("sleep 60");
    const pid = await bystander.pid("command");
    const run = await afterCrash({
      "claim.json": { pid, began: "another-boot/1" },
      "command.json": { pid, began: "another-boot/1" },
    });
    expect(await run.read()).toMatchObject({ native: "lost", status: "failed" });
    await run.stop();
    expect(isRunning(pid)).toBe(true);
  });

  it("is no process to stop when only the start time differs", async () => {
    const bystander = await sh("sleep 60");
    await bystander.pid("command");
    const { pid, began } = bystander.record("command.json") as { pid: number; began: string };
    const run = await afterCrash({
      "claim.json": { pid, began: `${began}0` },
      "command.json": { pid, began: `${began}0` },
    });
    await run.stop();
    expect((await run.read()).native).toBe("lost");
    expect(isRunning(pid)).toBe(true);
  });
});

it("an order that nobody takes up is lost after a minute, not waited for without end", async () => {
  const run = await started({ command: ["true"] });
  await run.untilEnded();
  for (const name of ["end.json", "claim.json"]) rmSync(run.file(name));
  expect(await run.read(1000)).toMatchObject({ native: "spooled", status: "submitted" });
  expect(await run.read(61_000)).toMatchObject({ native: "lost", status: "failed" });
});
