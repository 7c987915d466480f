import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { describe, expect, it, vi } from "vitest";
import { localProcess } from "../src/index.js";
import { sweep } from "../src/sweep.js";
import { eventually, newKey, sh, signal, started, temporaryDirectory, verdictOf } from "./harness.js";

const DAY_MS = 24 * 3_600_000;

describe("a run directory", () => {
  it("is for its user alone, whatever the umask", async () => {
    const before = process.umask(0);
    try {
      const run = await started({ command: ["echo", "x"], input: "file" });
      await run.untilEnded();
      expect(lstatSync(run.file("")).mode & 0o777).toBe(0o700);
      for (const name of readdirSync(run.file(""))) {
        expect((lstatSync(run.file(name)).mode & 0o077).toString(8), name).toBe("0");
      }
    } finally {
      process.umask(before);
    }
  });

  it("holds no draft after the start and after the end", async () => {
    const run = await sh("echo x");
    await run.untilEnded();
    expect(readdirSync(run.stateDir)).toEqual([run.key]);
    expect(readdirSync(run.file("")).filter((name) => name.startsWith("."))).toEqual([]);
  });

  it("that is a link is no run", async () => {
    const run = await sh("echo x");
    await run.untilEnded();
    const key = newKey();
    symlinkSync(run.file(""), path.join(run.stateDir, key));
    const isClaimed = async () => false;
    const read = run.adapter.read({ key }, { key, ageMs: 0, signal, isClaimed });
    expect(await verdictOf(read)).toMatchObject({ kind: "gone" });
    const found = run.adapter.find?.({
      key,
      input: {},
      startedAtMs: 0,
      lastStartedAtMs: 0,
      signal,
      isClaimed,
    });
    expect(await found).toBeUndefined();
  });

  it.each(["../x", "a/b", "", ".", "..", "A", "x".repeat(65), 7, null])(
    "is never that of the ref %j",
    async (key) => {
      const adapter = localProcess({ command: ["true"], stateDir: await temporaryDirectory() });
      const read = adapter.read({ key }, { key: "k", ageMs: 0, signal, isClaimed: async () => false });
      expect(await verdictOf(read)).toMatchObject({ kind: "rejected" });
    },
  );

  it("whose files are links or FIFOs leads nowhere and blocks nobody", async () => {
    const run = await sh("echo up; sleep 60");
    await run.untilMessage("up");
    rmSync(run.file("output.log"));
    symlinkSync("/etc/passwd", run.file("output.log"));
    execFileSync("mkfifo", [run.file("progress"), run.file("questions/q.json")]);
    const state = await run.read();
    expect(state).toMatchObject({ native: "running", status: "working" });
    expect(state.progress).toBeUndefined();
    expect(await run.adapter.logs?.(run.ref, undefined, { signal })).toEqual({ text: "", cursor: "0" });
  });

  it("that is gone is told as gone", async () => {
    const run = await sh("echo x");
    await run.untilEnded();
    rmSync(run.file(""), { recursive: true });
    expect(await verdictOf(run.read())).toMatchObject({ kind: "gone" });
    expect(await verdictOf(run.stop())).toMatchObject({ kind: "gone" });
  });
});

describe("the state directory", () => {
  const startIn = (stateDir: string) => {
    const adapter = localProcess({ command: ["true"], stateDir });
    return adapter.start({ key: newKey(), input: {}, retry: false, signal });
  };

  it("is refused when others may write there", async () => {
    const stateDir = await temporaryDirectory();
    chmodSync(stateDir, 0o777);
    expect(await verdictOf(startIn(stateDir))).toMatchObject({ kind: "rejected", code: "UnsafeStateDir" });
  });

  it("is refused when it is a link", async () => {
    const directory = await temporaryDirectory();
    mkdirSync(path.join(directory, "real"));
    symlinkSync(path.join(directory, "real"), path.join(directory, "link"));
    expect(await verdictOf(startIn(path.join(directory, "link")))).toMatchObject({ kind: "rejected" });
  });

  it("that is a file is explained as refused", async () => {
    const file = path.join(await temporaryDirectory(), "file");
    writeFileSync(file, "");
    const error: unknown = await startIn(file).catch((thrown: unknown) => thrown);
    const { explain } = localProcess({ command: ["true"] });
    expect(explain?.(error)).toMatchObject({ kind: "rejected", code: "EEXIST" });
  });
});

describe("housekeeping", () => {
  const age = (entry: string, ms: number) => {
    const seconds = (Date.now() - ms) / 1000;
    utimesSync(entry, seconds, seconds);
  };

  it("removes runs that ended long enough ago, and nothing else", async () => {
    const stateDir = await temporaryDirectory();
    const old = await sh("echo x", { stateDir });
    const young = await sh("echo x", { stateDir });
    const live = await sh("echo up; sleep 60", { stateDir });
    await Promise.all([old.untilEnded(), young.untilEnded(), live.untilMessage("up")]);
    const end = { ...old.record("end.json"), endedAtMs: Date.now() - 8 * DAY_MS };
    writeFileSync(old.file("end.json"), JSON.stringify(end));
    for (const name of ["Someone else's", ".draft-old", ".draft-new"]) mkdirSync(path.join(stateDir, name));
    age(path.join(stateDir, ".draft-old"), DAY_MS);
    age(live.file(""), 30 * DAY_MS);

    await sweep(stateDir, 7 * DAY_MS);
    const left = [".draft-new", "Someone else's", live.key, young.key];
    expect(readdirSync(stateDir).sort()).toEqual(left.sort());
    expect(readFileSync(young.file("output.log"), "utf8")).toBe("x\n");
  });

  it("follows no link out of a run", async () => {
    const outside = await temporaryDirectory();
    writeFileSync(path.join(outside, "precious"), "");
    const run = await sh(`ln -s "${outside}" "$TASKFERRY_ANSWERS/link"; echo x`);
    await run.untilEnded();
    await sweep(run.stateDir, -1);
    expect(existsSync(run.file(""))).toBe(false);
    expect(existsSync(path.join(outside, "precious"))).toBe(true);
  });

  it("removes lost runs too, counted from the last that happened in them", async () => {
    const run = await sh("sleep 60");
    const command = await run.pid("command");
    process.kill(await run.pid("claim"), "SIGKILL");
    process.kill(-command, "SIGKILL");
    expect((await run.untilEnded()).native).toBe("lost");
    await sweep(run.stateDir, DAY_MS);
    expect(existsSync(run.file(""))).toBe(true);
    age(run.file(""), 2 * DAY_MS);
    await sweep(run.stateDir, DAY_MS);
    expect(existsSync(run.file(""))).toBe(false);
  });

  it("is done by a start", async () => {
    const run = await sh("echo x");
    await run.untilEnded();
    const later = localProcess({ command: ["true"], stateDir: run.stateDir, keepMs: 0 });
    await later.start({ key: newKey(), input: {}, retry: false, signal });
    await eventually(() => expect(existsSync(run.file(""))).toBe(false));
  });
});

describe("options", () => {
  it.each([
    ["a time limit of nothing", { timeLimitMs: 0 }],
    ["a grace period that is no number", { graceMs: Number.NaN }],
    ["an unknown way in", { input: "shell" as "stdin" }],
    ["a variable with a name that is none", { env: { "A=B": "x" } }],
    ["a variable of Taskferry's", { env: { TASKFERRY_KEY: "x" } }],
  ])("refuse %s", (_, options) => {
    expect(() => localProcess({ command: ["true"], ...options })).toThrow(
      expect.objectContaining({ name: "WorkflowError", code: "configuration" }),
    );
  });

  it("refuse Windows with a reason", () => {
    const platform = vi.spyOn(process, "platform", "get").mockReturnValue("win32");
    try {
      expect(() => localProcess({ command: ["true"] })).toThrow("Windows");
    } finally {
      platform.mockRestore();
    }
  });
});
