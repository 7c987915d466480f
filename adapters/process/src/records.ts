/** The files of a run directory: what they are called and what stands in them. */

/** Names one process for ever, although the system uses its pid again. */
export interface ProcessIdentity {
  readonly pid: number;
  /** When the process began, as the system counts. */
  readonly began: string;
}

/** `run.json`: the order. Written before the directory gets its name, never changed. */
export interface RunSpec {
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly input: "arguments" | "stdin" | "file";
  /** `null`: no limit. */
  readonly timeLimitMs: number | null;
  readonly graceMs: number;
  readonly maxOutputBytes: number;
  readonly maxJsonBytes: number;
  readonly tailBytes: number;
}

/** `claim.json`: the one supervisor that runs this order. */
export interface Claim extends ProcessIdentity {
  readonly claimedAtMs: number;
}

/** `command.json`: the process that was spawned. It leads a process group of its own. */
export interface CommandRecord extends ProcessIdentity {
  readonly startedAtMs: number;
}

/** How a run ended. */
export type Ending =
  | { readonly how: "exited"; readonly code: number }
  | { readonly how: "signalled"; readonly signal: string }
  | { readonly how: "timed out" }
  | { readonly how: "stopped" }
  | { readonly how: "not started"; readonly code: string; readonly message: string };

/** `end.json`: the last file to be written, so that whoever sees it sees the whole run. */
export interface EndRecord {
  readonly ending: Ending;
  readonly endedAtMs: number;
  readonly stdout: Tail;
  readonly stderr: Tail;
  readonly lastLine: string;
}

/** The end of a stream, as readable text. */
export interface Tail {
  readonly text: string;
  /** Bytes of the whole stream. */
  readonly bytes: number;
}

export const FILES = {
  run: "run.json",
  input: "input.json",
  claim: "claim.json",
  command: "command.json",
  end: "end.json",
  /** Exists once a stop was asked for. */
  stop: "stop",
  /** Both streams, line by line as they came. */
  log: "output.log",
  /** The last of a log that has reached its limit, while the run goes on. */
  logTail: "output.tail",
  /** The beginning of stdout, which may turn out to be JSON. */
  stdout: "stdout",
  progress: "progress",
  questions: "questions",
  answers: "answers",
  ask: "ask",
  supervisorLog: "supervisor.log",
} as const;

/** The end of the wait for a supervisor: it says on its stdout how the claim went. */
export type ClaimOutcome = "claimed" | "taken";
