import os from "node:os";
import path from "node:path";
import { checkOptions, WorkflowError } from "@taskferry/core";
import { type CommandTemplate, parseCommand } from "./command-line.js";

/** Options of {@link localProcess}. */
export interface LocalProcessOptions {
  /**
   * The program and its arguments. No shell reads it. `{{name}}` is replaced by that property of the input,
   * `{{name?}}` too, but the whole argument is left out when there is none, and an argument that is just
   * `{{names...}}` becomes one argument per item of a list. `\{{` stands for the characters `{{`.
   */
  readonly command: readonly string[];
  /** Where the command runs. @default the server's own working directory */
  readonly cwd?: string;
  /**
   * How the command gets the input. `"arguments"`: through placeholders alone, so a property without one is
   * refused. `"stdin"`: also whole, as one line of JSON. `"file"`: also whole, in the file named by the
   * variable `TASKFERRY_INPUT`.
   * @default "arguments"
   */
  readonly input?: "arguments" | "stdin" | "file";
  /** Placeholders whose values may begin with `-`, and so may be options of the command. @default [] */
  readonly allowDash?: readonly string[];
  /** Which of the server's environment variables the command gets. @default DEFAULT_PASS_ENV */
  readonly passEnv?: readonly string[];
  /** Environment variables set for the command. @default {} */
  readonly env?: Readonly<Record<string, string>>;
  /** After how many milliseconds the command is stopped. @default no limit */
  readonly timeLimitMs?: number;
  /** From SIGTERM to SIGKILL, in milliseconds. @default 10000 */
  readonly graceMs?: number;
  /** How much of stdout and stderr together is kept on disk, in bytes. @default 67108864 (64 MiB) */
  readonly maxOutputBytes?: number;
  /** The largest stdout that is parsed as JSON, in bytes. @default 1048576 (1 MiB) */
  readonly maxJsonBytes?: number;
  /** How much of the end of stdout, and of stderr, a result shows, in bytes. @default 16384 (16 KiB) */
  readonly tailBytes?: number;
  /**
   * Where run directories live. Only this user may write there.
   * @default $XDG_STATE_HOME/taskferry/process, or ~/.local/state/taskferry/process
   */
  readonly stateDir?: string;
  /**
   * How long the directory of a run is kept after its end, in milliseconds. Longer than any time the server
   * may be down: a run whose directory is gone is forgotten.
   * @default 604800000 (7 days)
   */
  readonly keepMs?: number;
}

/** What {@link LocalProcessOptions} become: checked, with defaults. */
export interface Settings {
  readonly template: CommandTemplate;
  readonly cwd: string;
  readonly input: "arguments" | "stdin" | "file";
  readonly passEnv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly timeLimitMs: number | null;
  readonly graceMs: number;
  readonly maxOutputBytes: number;
  readonly maxJsonBytes: number;
  readonly tailBytes: number;
  readonly stateDir: string;
  readonly keepMs: number;
}

/** Variables that programs need to find each other, the user's files and the language. None of them is a secret. */
export const DEFAULT_PASS_ENV: readonly string[] = [
  "PATH",
  "HOME",
  "USER",
  "LOGNAME",
  "SHELL",
  "LANG",
  "LC_ALL",
  "LC_CTYPE",
  "TZ",
  "TMPDIR",
];

const OPTIONS = {
  command: true,
  cwd: true,
  input: true,
  allowDash: true,
  passEnv: true,
  env: true,
  timeLimitMs: true,
  graceMs: true,
  maxOutputBytes: true,
  maxJsonBytes: true,
  tailBytes: true,
  stateDir: true,
  keepMs: true,
} as const satisfies Readonly<Record<keyof LocalProcessOptions, true>>;

/** @throws WorkflowError `configuration` */
export function resolveOptions(options: LocalProcessOptions): Settings {
  checkOptions("localProcess", options, OPTIONS);
  if (process.platform === "win32") {
    throw misconfigured(
      "@taskferry/process needs process groups and signals, which Windows does not have. Run the server in WSL.",
    );
  }
  const input = options.input ?? "arguments";
  if (!["arguments", "stdin", "file"].includes(input)) {
    throw misconfigured('`input` must be "arguments", "stdin" or "file".');
  }
  return {
    template: parseCommand(options.command, options.allowDash ?? []),
    cwd: path.resolve(options.cwd ?? "."),
    input,
    passEnv: options.passEnv ?? DEFAULT_PASS_ENV,
    env: checkEnv(options.env ?? {}),
    timeLimitMs: options.timeLimitMs === undefined ? null : atLeast(1, "timeLimitMs", options.timeLimitMs),
    graceMs: atLeast(0, "graceMs", options.graceMs ?? 10_000),
    maxOutputBytes: atLeast(0, "maxOutputBytes", options.maxOutputBytes ?? 64 * 1024 * 1024),
    maxJsonBytes: atLeast(0, "maxJsonBytes", options.maxJsonBytes ?? 1024 * 1024),
    tailBytes: atLeast(0, "tailBytes", options.tailBytes ?? 16 * 1024),
    stateDir: path.resolve(options.stateDir ?? defaultStateDir()),
    keepMs: atLeast(0, "keepMs", options.keepMs ?? 7 * 24 * 3_600_000),
  };
}

function defaultStateDir(): string {
  // The XDG Base Directory Specification: relative values are to be ignored.
  const base = process.env["XDG_STATE_HOME"];
  const root =
    base !== undefined && path.isAbsolute(base) ? base : path.join(os.homedir(), ".local", "state");
  return path.join(root, "taskferry", "process");
}

function checkEnv(env: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  for (const [name, value] of Object.entries(env)) {
    if (name === "" || /[=\0]/.test(name) || typeof value !== "string" || value.includes("\0")) {
      throw misconfigured(
        `\`env\` has a name or value that no environment can hold: ${JSON.stringify(name)}.`,
      );
    }
    if (name.startsWith("TASKFERRY_")) throw misconfigured(`\`env\` cannot set ${name}: Taskferry sets it.`);
  }
  return env;
}

function atLeast(least: number, name: string, value: number): number {
  if (Number.isFinite(value) && value >= least) return value;
  throw misconfigured(`\`${name}\` must be a number, at least ${least}.`);
}

function misconfigured(message: string): WorkflowError {
  return new WorkflowError("configuration", message);
}
