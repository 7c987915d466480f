import { stat } from "node:fs/promises";
import path from "node:path";
import { signalGroup } from "./command.js";
import { errorCode, readRecord, writeOnce } from "./files.js";
import { FILES, type RunSpec } from "./records.js";
import { livenessOf } from "./state.js";

/**
 * Asks for a run's end. The wish is a file, which also a supervisor finds that has not begun yet; the signal only
 * makes it look. Repeatable, and nothing to do for a run that has ended.
 */
export async function stopRun(directory: string): Promise<void> {
  const before = await livenessOf(directory);
  if (before.phase === "ended" || before.phase === "lost") return;
  const file = path.join(directory, FILES.stop);
  const first = writeOnce(file, "");
  // Looked at again after the file is there: a supervisor that claimed in between may have missed it.
  const now = await livenessOf(directory);
  if (now.phase === "supervised") wake(now.claim.pid);
  if (now.phase !== "unsupervised") return;
  // Nobody else is left to see to it, so the grace period is counted by the stops that core repeats.
  const spec = await readRecord<RunSpec>(path.join(directory, FILES.run));
  const sinceMs = Date.now() - (await stat(file)).mtimeMs;
  const overdue = !first && sinceMs >= (spec?.graceMs ?? 0);
  signalGroup(now.command.pid, overdue ? "SIGKILL" : "SIGTERM");
}

function wake(supervisor: number): void {
  try {
    process.kill(supervisor, "SIGUSR2");
  } catch (error) {
    // It has just ended, and so has the run.
    if (errorCode(error) !== "ESRCH") throw error;
  }
}
