import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, constants, openSync } from "node:fs";
import path from "node:path";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { EngineError } from "@taskferry/core";
import { type ClaimOutcome, FILES } from "./records.js";

/** The same file from `src/` and from `dist/`. */
const SUPERVISOR = fileURLToPath(new URL("../dist/supervisor.js", import.meta.url));
const OUTCOMES: ReadonlySet<string> = new Set<`${ClaimOutcome}\n`>(["claimed\n", "taken\n"]);
/** A supervisor only moves bytes: small heaps keep many of them cheap. */
const NODE_FLAGS = ["--max-semi-space-size=1", "--max-old-space-size=64", "--no-warnings"];

/**
 * Starts a supervisor for an order on disk, in a session of its own, and waits until it has claimed the order or
 * has seen that another one did.
 * @param env the command's environment; goes through a pipe, so that no secret of it is on disk
 */
export async function launchSupervisor(
  directory: string,
  env: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted();
  const flags = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW;
  const log = openSync(path.join(directory, FILES.supervisorLog), flags, 0o600);
  try {
    const child = spawn(process.execPath, [...NODE_FLAGS, SUPERVISOR, directory], {
      cwd: "/",
      detached: true,
      // None of the server's variables: NODE_OPTIONS would reach the supervisor, secrets its memory.
      env: { PATH: process.env["PATH"] ?? "/usr/local/bin:/usr/bin:/bin" },
      stdio: ["pipe", "pipe", log],
    });
    child.unref();
    await claimed(child.stdin as Writable, child.stdout as Readable, child, JSON.stringify(env), signal);
  } finally {
    closeSync(log);
  }
}

function claimed(
  stdin: Writable,
  stdout: Readable,
  child: ChildProcess,
  env: string,
  signal: AbortSignal,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let said = "";
    const settle = (outcome: () => void) => {
      signal.removeEventListener("abort", aborted);
      // Broken off before the claim, the supervisor ends by itself; after it the run simply exists.
      stdin.destroy();
      stdout.destroy();
      outcome();
    };
    const aborted = () => settle(() => reject(signal.reason));
    signal.addEventListener("abort", aborted, { once: true });
    child.once("error", (error) => settle(() => reject(error)));
    // A supervisor that dies early breaks this pipe. What it said, or did not say, is what tells.
    stdin.on("error", () => {});
    stdout.setEncoding("utf8").on("data", (text: string) => {
      said += text;
      if (OUTCOMES.has(said)) settle(resolve);
    });
    stdout.once("close", () => settle(() => reject(notSupervised())));
    stdin.end(env);
  });
}

function notSupervised(): EngineError {
  return new EngineError({
    kind: "retry",
    code: "SupervisorDied",
    message: `The supervisor of the run ended before it began: see ${FILES.supervisorLog} in the run's directory.`,
  });
}
