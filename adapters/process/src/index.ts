import path from "node:path";
import { EngineError, type ErrorVerdict, type StartedRun, type WorkflowAdapter } from "@taskferry/core";
import { fillCommand } from "./command-line.js";
import { commandEnvironment } from "./environment.js";
import { errorCode, exists } from "./files.js";
import { launchSupervisor } from "./launch.js";
import { logPage } from "./logs.js";
import { type LocalProcessOptions, resolveOptions, type Settings } from "./options.js";
import { writeAnswer } from "./questions.js";
import { FILES, type RunSpec } from "./records.js";
import { directoryOf, isOwnDirectory, prepareStateDir, publishRun, requireRun } from "./run-directory.js";
import { livenessOf, stateOf } from "./state.js";
import { stopRun } from "./stop.js";
import { sweep } from "./sweep.js";

export { DEFAULT_PASS_ENV, type LocalProcessOptions } from "./options.js";
export type { ProcessRef } from "./run-directory.js";
export { type ProcessState, RUN_STATUS } from "./status.js";

const SWEEP_EVERY_MS = 60_000;

/**
 * Makes a local command a workflow. Each run is a process of its own that outlives the server, and a directory that
 * any later server reads.
 *
 * @example
 * localProcess({ command: ["tar", "-czf", "{{archive}}", "--", "{{files...}}"], cwd: "/srv/data" })
 * @throws WorkflowError `configuration` for options that cannot work, and on Windows
 */
export function localProcess(options: LocalProcessOptions): WorkflowAdapter {
  const settings = resolveOptions(options);
  const { stateDir, keepMs } = settings;
  // Housekeeping only: that each adapter instance has its own clock harms nobody.
  let sweptAt = Number.NEGATIVE_INFINITY;

  async function supervise(key: string, signal: AbortSignal): Promise<StartedRun> {
    const directory = directoryOf(stateDir, { key });
    const unclaimed = !(await exists(path.join(directory, FILES.claim)));
    if (unclaimed) await launchSupervisor(directory, commandEnvironment(settings), signal);
    return { ref: { key } };
  }

  return {
    engine: "process",
    startsOnce: true,

    async start({ key, input, signal }) {
      signal.throwIfAborted();
      const argv = fillCommand(settings.template, input, settings.input !== "arguments");
      await prepareStateDir(stateDir);
      if (!(await isOwnDirectory(directoryOf(stateDir, { key })))) {
        const text = settings.input === "arguments" ? undefined : `${JSON.stringify(input)}\n`;
        await publishRun(stateDir, key, toSpec(settings, argv), text);
      }
      const started = await supervise(key, signal);
      if (performance.now() - sweptAt > SWEEP_EVERY_MS) {
        sweptAt = performance.now();
        void sweep(stateDir, keepMs).catch(() => {});
      }
      return started;
    },

    async find({ key, signal }) {
      signal.throwIfAborted();
      // A whole order on disk is a run, even if its starter died before anybody took it up: then this takes it up.
      if (!(await isOwnDirectory(directoryOf(stateDir, { key })))) return undefined;
      return supervise(key, signal);
    },

    async read(ref, { ageMs, signal }) {
      signal.throwIfAborted();
      return stateOf(await requireRun(stateDir, ref), ageMs);
    },

    async stop(ref, { signal }) {
      signal.throwIfAborted();
      await stopRun(await requireRun(stateDir, ref));
    },

    async answer(ref, questionKey, answer, { signal }) {
      signal.throwIfAborted();
      const directory = await requireRun(stateDir, ref);
      if ((await livenessOf(directory)).phase !== "supervised") {
        throw new EngineError({
          kind: "gone",
          code: "RunEnded",
          message: "The command has ended and asks no more.",
        });
      }
      await writeAnswer(directory, questionKey, answer);
    },

    async logs(ref, cursor, { signal }) {
      signal.throwIfAborted();
      return logPage(await requireRun(stateDir, ref), cursor);
    },

    explain,
  };
}

function toSpec(settings: Settings, argv: readonly string[]): RunSpec {
  const { cwd, input, timeLimitMs, graceMs, maxOutputBytes, maxJsonBytes, tailBytes } = settings;
  return { argv, cwd, input, timeLimitMs, graceMs, maxOutputBytes, maxJsonBytes, tailBytes };
}

/** Every call can be made again, so nothing here is ambiguous: it was refused, or it may go through later. */
function explain(error: unknown): ErrorVerdict | undefined {
  const code = errorCode(error);
  const refused = (message: string): ErrorVerdict => ({ kind: "rejected", code: code as string, message });
  const later = (message: string): ErrorVerdict => ({ kind: "retry", code: code as string, message });
  switch (code) {
    case "EACCES":
    case "EPERM":
    case "EROFS":
      return refused("The server may not use its state directory.");
    case "ENOTDIR":
    case "EEXIST":
    case "ELOOP":
      return refused("The state directory is not a directory.");
    case "ENOENT":
      return refused("The state directory, or the Node.js that runs the server, is not there any more.");
    case "ENOSPC":
    case "EDQUOT":
      return later("The disk of the state directory is full.");
    case "EMFILE":
    case "ENFILE":
    case "EAGAIN":
    case "ENOMEM":
      return later("The machine has no files, processes or memory left.");
    default:
      return undefined;
  }
}
