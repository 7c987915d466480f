/** From the files of a run directory to what core wants to know. */
import path from "node:path";
import { pathToFileURL } from "node:url";
import type { Json, RunFailure, RunLink, RunOutput, RunProgress, RunState } from "@taskferry/core";
import { exists, openRegular, readRecord, readSlice } from "./files.js";
import { isAlive } from "./process-identity.js";
import { openQuestions } from "./questions.js";
import {
  type Claim,
  type CommandRecord,
  type Ending,
  type EndRecord,
  FILES,
  type RunSpec,
  type Tail,
} from "./records.js";
import { type ProcessState, RUN_STATUS } from "./status.js";
import { incompleteUtf8, lastLine } from "./text.js";

/** An order that no supervisor took within this time was forgotten: the starter died, and no other start came. */
const CLAIM_WITHIN_MS = 60_000;
const LAST_LINE_BYTES = 8 * 1024;

/** Who is at work on a run. */
export type Liveness =
  | { readonly phase: "ended"; readonly end: EndRecord }
  | { readonly phase: "unclaimed" }
  | { readonly phase: "supervised"; readonly claim: Claim }
  | { readonly phase: "unsupervised"; readonly command: CommandRecord }
  | { readonly phase: "lost"; readonly command: CommandRecord | undefined };

export async function livenessOf(directory: string): Promise<Liveness> {
  const end = await readRecord<EndRecord>(path.join(directory, FILES.end));
  if (end !== undefined) return { phase: "ended", end };
  const claim = await readRecord<Claim>(path.join(directory, FILES.claim));
  if (claim === undefined) return { phase: "unclaimed" };
  if (isAlive(claim)) return { phase: "supervised", claim };
  // It may have ended in good order since the first look.
  const lateEnd = await readRecord<EndRecord>(path.join(directory, FILES.end));
  if (lateEnd !== undefined) return { phase: "ended", end: lateEnd };
  const command = await readRecord<CommandRecord>(path.join(directory, FILES.command));
  return command !== undefined && isAlive(command)
    ? { phase: "unsupervised", command }
    : { phase: "lost", command };
}

/** @param ageMs milliseconds since the start */
export async function stateOf(directory: string, ageMs: number): Promise<RunState> {
  const liveness = await livenessOf(directory);
  switch (liveness.phase) {
    case "ended":
      return endedState(directory, liveness.end);
    case "unclaimed":
      return ageMs < CLAIM_WITHIN_MS
        ? { native: "spooled", status: RUN_STATUS.spooled }
        : lost("Nothing took up the order: the command has not been started.", []);
    case "lost":
      return lost(
        liveness.command === undefined
          ? "The supervisor was killed before it could say whether the command began."
          : "Supervisor and command were killed, or the machine went down: how far the command came is not known.",
        await links(directory),
      );
    case "unsupervised":
      return {
        native: "unsupervised",
        status: RUN_STATUS.unsupervised,
        message:
          "The supervisor was killed. The command goes on, but its output and exit status will not be known.",
      };
    case "supervised":
      return liveState(directory);
  }
}

async function liveState(directory: string): Promise<RunState> {
  const progress = await progressOf(directory);
  const told = { ...(progress.progress && { progress: progress.progress }) };
  const message = progress.message ?? (await lastOutputLine(directory));
  if (await exists(path.join(directory, FILES.stop))) {
    return { native: "stopping", status: RUN_STATUS.stopping, ...told, message: "Asked to stop" };
  }
  const { questions, problem } = await openQuestions(directory);
  const state: ProcessState = questions.length > 0 ? "asking" : "running";
  const line = problem ?? (message === "" ? undefined : message);
  return {
    native: state,
    status: RUN_STATUS[state],
    ...told,
    ...(line !== undefined && { message: line }),
    ...(questions.length > 0 && { questions }),
  };
}

async function endedState(directory: string, end: EndRecord): Promise<RunState> {
  const { ending, lastLine: message } = end;
  const base = {
    native: nativeWord(ending),
    status: RUN_STATUS[ending.how],
    ...(message !== "" && { message }),
  };
  if (ending.how === "stopped") return base;
  if (ending.how === "not started") {
    return { ...base, message: ending.message, failure: { code: ending.code, message: ending.message } };
  }
  const program = await programOf(directory);
  const value = await jsonOf(directory, end.stdout);
  if (ending.how === "exited" && ending.code === 0) {
    const output: RunOutput = {
      // Core shows the value as text by itself; what stderr says beside it would be missing.
      ...(value !== undefined ? { value } : {}),
      ...(value === undefined || end.stderr.text !== "" ? { text: tails(program, end) } : {}),
      links: await links(directory),
    };
    return { ...base, output };
  }
  const failure: RunFailure = {
    ...explain(program, ending),
    value: { ...detail(ending), ...(value !== undefined && { stdout: value }) },
    text: tails(program, end),
    links: await links(directory),
  };
  return { ...base, failure };
}

/** The engine's own word for people and logs. */
export function nativeWord(ending: Ending): string {
  if (ending.how === "exited") return `exited ${ending.code}`;
  return ending.how === "signalled" ? `signalled ${ending.signal}` : ending.how;
}

type RanEnding = Exclude<Ending, { how: "stopped" | "not started" }>;

function explain(program: string, ending: RanEnding): Pick<RunFailure, "code" | "message"> {
  switch (ending.how) {
    case "exited":
      return { code: "ExitCode", message: `${program} exited with status ${ending.code}` };
    case "signalled":
      return { code: "Signal", message: `${program} was ended by ${ending.signal}` };
    case "timed out":
      return { code: "TimedOut", message: `${program} was stopped: its time limit had passed` };
  }
}

function detail(ending: RanEnding): { readonly [key: string]: Json } {
  if (ending.how === "exited") return { exitCode: ending.code };
  return ending.how === "signalled" ? { signal: ending.signal } : { timedOut: true };
}

function lost(message: string, logLinks: readonly RunLink[]): RunState {
  return {
    native: "lost",
    status: RUN_STATUS.lost,
    message,
    failure: { code: "Lost", message, links: logLinks },
  };
}

/** The template's program is the operator's word; the arguments hold the caller's. */
async function programOf(directory: string): Promise<string> {
  const spec = await readRecord<RunSpec>(path.join(directory, FILES.run));
  return path.basename(spec?.argv[0] ?? "The command");
}

function tails(program: string, { stdout, stderr }: EndRecord): string {
  const parts = [];
  if (stdout.text.trim() !== "") parts.push(cut(stdout));
  if (stderr.text.trim() !== "") parts.push(`[stderr]\n${cut(stderr)}`);
  return parts.length > 0 ? parts.join("\n\n") : `${program} printed nothing.`;
}

function cut({ text, bytes }: Tail): string {
  // Colours and the like are gone from the text, so this is never less than what is left out.
  const left = bytes - Buffer.byteLength(text);
  return left > 1024
    ? `[the end of ${bytes} bytes; what came before is in the log, up to its limit]\n${text.trimEnd()}`
    : text.trimEnd();
}

/** Stdout as a value, if it is JSON and was kept whole: a cut `123` would still be a number. */
async function jsonOf(directory: string, { bytes }: Tail): Promise<Json | undefined> {
  if (bytes === 0) return undefined;
  const stdout = await readSlice(path.join(directory, FILES.stdout), 0, bytes + 1);
  if (stdout?.length !== bytes) return undefined;
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(stdout)) as Json;
  } catch {
    return undefined;
  }
}

async function links(directory: string): Promise<readonly RunLink[]> {
  const log = path.join(directory, FILES.log);
  const handle = await openRegular(log);
  if (handle === undefined) return [];
  await handle.close();
  return [
    {
      uri: pathToFileURL(log).href,
      name: FILES.log,
      description: "All output, on the server's machine",
      mimeType: "text/plain",
    },
  ];
}

async function lastOutputLine(directory: string): Promise<string> {
  // Beside a log that has reached its limit lies the latest of the output.
  const bytes =
    (await readSlice(path.join(directory, FILES.logTail), -LAST_LINE_BYTES, LAST_LINE_BYTES)) ??
    (await readSlice(path.join(directory, FILES.log), -LAST_LINE_BYTES, LAST_LINE_BYTES));
  if (bytes === undefined) return "";
  return lastLine(bytes.subarray(0, bytes.length - incompleteUtf8(bytes)).toString("utf8"));
}

/** The progress file holds `3/10`, `3`, or either with a line for people behind it. */
async function progressOf(
  directory: string,
): Promise<{ readonly progress?: RunProgress; readonly message?: string }> {
  const bytes = await readSlice(path.join(directory, FILES.progress), 0, 1024);
  const found = /^\s*(\d+(?:\.\d+)?)(?:\s*\/\s*(\d+(?:\.\d+)?))?(?:[ \t]+(\S.*))?/.exec(
    bytes?.toString("utf8") ?? "",
  );
  if (found === null) return {};
  const [, done, total, text] = found;
  const message = lastLine(text ?? "");
  return {
    progress: total === undefined ? { done: Number(done) } : { done: Number(done), total: Number(total) },
    ...(message !== "" && { message }),
  };
}
