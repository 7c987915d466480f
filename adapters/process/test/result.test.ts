import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it, vi } from "vitest";
import { newKey, node, Run, sh, started, temporaryDirectory } from "./harness.js";

afterEach(() => vi.unstubAllEnvs());

describe("a command that exits with status 0", () => {
  it("is completed with what it printed, and a link to its log", async () => {
    const run = await sh("echo two >&2; echo one; sleep 0.1; echo three");
    const state = await run.untilEnded();
    expect(state).toMatchObject({ native: "exited 0", status: "completed", message: "three" });
    expect(state.output?.value).toBeUndefined();
    expect(state.output?.text).toBe("one\nthree\n\n[stderr]\ntwo");
    const [link] = state.output?.links ?? [];
    expect(readFileSync(fileURLToPath(link?.uri as string), "utf8")).toContain("two\n");
    expect(state.failure).toBeUndefined();
  });

  it.each([
    ['{"a":[1]}\n', { a: [1] }],
    ["42", 42],
    ["null", null],
    ['"é"', "é"],
  ])("and JSON on stdout has a value: %j", async (json, value) => {
    const run = await node(`process.stdout.write(${JSON.stringify(json)})`);
    const { output } = await run.untilEnded();
    expect(output?.value).toEqual(value);
    expect(output?.text).toBeUndefined();
  });

  it("and JSON on stdout still tells what stderr said", async () => {
    const { output } = await (await sh(`echo '{"a":1}'; echo careful >&2`)).untilEnded();
    expect(output).toMatchObject({ value: { a: 1 }, text: '{"a":1}\n\n[stderr]\ncareful' });
  });

  it("and printed nothing says so", async () => {
    expect((await (await sh(":")).untilEnded()).output?.text).toBe("sh printed nothing.");
  });

  it("and printed more JSON than allowed has no value, not even a shorter number", async () => {
    const { output } = await (await sh("printf 123456", { maxJsonBytes: 3 })).untilEnded();
    expect(output?.value).toBeUndefined();
    expect(output?.text).toBe("123456");
  });
});

describe("a command that fails", () => {
  it("is completed with its status and the end of what it said", async () => {
    const state = await (await sh("echo out; echo oops >&2; exit 2")).untilEnded();
    expect(state).toMatchObject({
      native: "exited 2",
      status: "completed",
      failure: { code: "ExitCode", message: "sh exited with status 2", value: { exitCode: 2 } },
    });
    expect(state.failure?.text).toBe("out\n\n[stderr]\noops");
    expect(state.failure?.links).toHaveLength(1);
    expect(state.output).toBeUndefined();
  });

  it("may explain itself in JSON", async () => {
    const { failure } = await (await sh(`echo '{"why":"x"}'; exit 3`)).untilEnded();
    expect(failure?.value).toEqual({ exitCode: 3, stdout: { why: "x" } });
  });

  it("by a signal is told with the signal", async () => {
    const state = await (await sh("kill -KILL $$")).untilEnded();
    expect(state).toMatchObject({
      native: "signalled SIGKILL",
      status: "completed",
      failure: { code: "Signal", message: "sh was ended by SIGKILL" },
    });
  });
});

describe("a command that cannot be run", () => {
  it("because there is none is failed, with a clear message", async () => {
    const run = await started({ command: ["no-such-program-here", "{{a}}"] }, { a: "secret" });
    const state = await run.untilEnded();
    expect(state).toMatchObject({
      native: "not started",
      status: "failed",
      failure: { code: "ENOENT", message: "Command not found: no-such-program-here" },
    });
    expect(JSON.stringify(state)).not.toContain("secret");
  });

  it("because it is not executable is failed", async () => {
    const directory = await temporaryDirectory();
    const file = path.join(directory, "script");
    writeFileSync(file, "echo");
    chmodSync(file, 0o600);
    const { failure } = await (await started({ command: [file] })).untilEnded();
    expect(failure?.code).toBe("EACCES");
    expect(failure?.message).toContain("is it executable?");
  });

  it("because its directory is missing is failed, and does not blame the command", async () => {
    const { failure } = await (await sh(":", { cwd: "/no/such/directory" })).untilEnded();
    expect(failure?.message).toBe("The working directory of the command does not exist.");
  });

  it("because its arguments are too many is failed", async () => {
    const list = Array.from({ length: 60 }, () => "x".repeat(100_000));
    const run = await started({ command: ["true", "{{list...}}"] }, { list });
    expect((await run.untilEnded()).failure?.code).toBe("E2BIG");
  });
});

describe("what a command is given", () => {
  it("is a chosen environment: no secret of the server's reaches it", async () => {
    vi.stubEnv("AWS_SECRET_ACCESS_KEY", "leak-me");
    vi.stubEnv("NODE_OPTIONS", "--no-deprecation");
    vi.stubEnv("CHOSEN", "yes");
    const script = "process.stdout.write(JSON.stringify(process.env))";
    const byDefault = (await (await node(script)).untilEnded()).output?.value as Record<string, string>;
    expect(byDefault["PATH"]).toBe(process.env["PATH"]);
    expect(Object.values(byDefault)).not.toContain("leak-me");
    expect(byDefault).not.toHaveProperty("NODE_OPTIONS");
    expect(byDefault).not.toHaveProperty("CHOSEN");

    const chosen = await node(script, { passEnv: ["CHOSEN"], env: { EXTRA: "1" } });
    const environment = (await chosen.untilEnded()).output?.value as Record<string, string>;
    const names = Object.keys(environment).filter((name) => !name.startsWith("TASKFERRY_"));
    expect(names.sort()).toEqual(["CHOSEN", "EXTRA"]);
    expect(environment["TASKFERRY_KEY"]).toBe(chosen.key);
  });

  it("leaves no environment variable on disk", async () => {
    const run = await sh("echo done", { env: { TOKEN: "leak-me-not" } });
    await run.untilEnded();
    for (const name of [
      "run.json",
      "claim.json",
      "command.json",
      "end.json",
      "output.log",
      "supervisor.log",
    ]) {
      expect(readFileSync(run.file(name), "utf8")).not.toContain("leak-me-not");
    }
  });

  it("is its directory", async () => {
    const cwd = path.join(await temporaryDirectory(), "wörk dir");
    mkdirSync(cwd);
    expect((await (await sh("pwd -P", { cwd })).untilEnded()).message).toBe(cwd);
  });

  it("is an empty stdin when the input goes into arguments", async () => {
    expect((await (await sh("cat; echo end")).untilEnded()).output?.text).toBe("end");
  });

  it("is the whole input on stdin when asked for", async () => {
    const input = { text: "ü\n", list: [1, null] };
    const run = await started({ command: ["cat"], input: "stdin" }, input);
    expect((await run.untilEnded()).output?.value).toEqual(input);
  });

  it("is the whole input in a file when asked for, beside arguments", async () => {
    const run = await started(
      { command: ["sh", "-c", 'cat "$TASKFERRY_INPUT"; echo "$1" >&2', "sh", "{{a}}"], input: "file" },
      { a: "x", b: [1] },
    );
    expect((await run.untilEnded()).output).toMatchObject({
      value: { a: "x", b: [1] },
      text: '{"a":"x","b":[1]}\n\n[stderr]\nx',
    });
  });

  it("is arguments that no shell has seen", async () => {
    const values = ["a b", "$(echo x)", "`id`", "*", "'", '"', "\\", "\n", "é😀", ""];
    const run = await started(
      {
        command: [
          process.execPath,
          "-e",
          "console.log(JSON.stringify(process.argv.slice(1)))",
          "--",
          "{{v...}}",
        ],
      },
      { v: values },
    );
    expect((await run.untilEnded()).output?.value).toEqual(values);
  });
});

it("25 runs at once each end as themselves", async () => {
  const stateDir = await temporaryDirectory();
  const runs = await Promise.all(
    Array.from({ length: 25 }, (_, n) =>
      started({ command: ["sh", "-c", 'echo "$1"', "sh", "{{n}}"], stateDir }, { n }, newKey()),
    ),
  );
  const values = await Promise.all(runs.map(async (run) => (await run.untilEnded()).output?.value));
  expect(values).toEqual(Array.from({ length: 25 }, (_, n) => n));
}, 60_000);

it("is known to a new adapter in a new process by its ref alone", async () => {
  const run = await sh("echo hello");
  const { localProcess } = await import("../src/index.js");
  const later = new Run(localProcess({ command: ["true"], stateDir: run.stateDir }), run.stateDir, run.key);
  expect((await later.untilEnded()).message).toBe("hello");
});
