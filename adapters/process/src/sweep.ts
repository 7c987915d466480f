import { randomBytes } from "node:crypto";
import { lstat, readdir, rename, rm } from "node:fs/promises";
import path from "node:path";
import { DRAFT_PREFIX, isOwnDirectory, isRunKey } from "./run-directory.js";
import { livenessOf } from "./state.js";

/** A draft older than this has lost its starter. */
const DRAFT_MS = 3_600_000;

/** Removes the directories of runs that ended more than `keepMs` ago, and drafts that were never finished. */
export async function sweep(stateDir: string, keepMs: number): Promise<void> {
  for (const name of await readdir(stateDir)) {
    const directory = path.join(stateDir, name);
    try {
      if (!(await isOwnDirectory(directory))) continue;
      if (name.startsWith(DRAFT_PREFIX)) {
        if (await isOlder(directory, DRAFT_MS)) await rm(directory, { recursive: true, force: true });
      } else if (isRunKey(name) && (await isForgotten(directory, keepMs))) {
        // First out of sight, so that no reader meets a run with half its files. `rm` follows no links.
        const grave = path.join(stateDir, `${DRAFT_PREFIX}${randomBytes(8).toString("hex")}`);
        await rename(directory, grave);
        await rm(grave, { recursive: true, force: true });
      }
    } catch {
      // Another server sweeps the same directory, or a file is not ours to remove. It is housekeeping, no duty.
    }
  }
}

async function isForgotten(directory: string, keepMs: number): Promise<boolean> {
  const liveness = await livenessOf(directory);
  if (liveness.phase === "ended") return Date.now() - liveness.end.endedAtMs > keepMs;
  // Lost, or ordered and never begun: nobody wrote down when, but nothing has changed here since.
  return (liveness.phase === "lost" || liveness.phase === "unclaimed") && isOlder(directory, keepMs);
}

async function isOlder(directory: string, ageMs: number): Promise<boolean> {
  return Date.now() - (await lstat(directory)).mtimeMs > ageMs;
}
