import { randomBytes } from "node:crypto";
import { lstat, mkdir, open, rename, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { EngineError, isJsonObject, type RunRef } from "@taskferry/core";
import { errorCode } from "./files.js";
import { FILES, type RunSpec } from "./records.js";

/** What names a run outside. A key and not a path: what comes back from a database must not point anywhere. */
export interface ProcessRef {
  readonly key: string;
}

/** Directories in the state directory that are not runs (yet, or any more). */
export const DRAFT_PREFIX = ".draft-";

const KEY = /^[a-z0-9][a-z0-9_-]{0,63}$/;

export function isRunKey(name: string): boolean {
  return KEY.test(name);
}

/** @throws EngineError `rejected` for a key that is not fit to be a directory's name */
export function directoryOf(stateDir: string, ref: RunRef | ProcessRef): string {
  const key = isJsonObject(ref) ? ref.key : undefined;
  if (typeof key === "string" && isRunKey(key)) return path.join(stateDir, key);
  throw new EngineError({
    kind: "rejected",
    code: "InvalidRef",
    message: "This is no run of a local process.",
  });
}

/** @throws EngineError `gone` when there is no such run, or something else stands in its place */
export async function requireRun(stateDir: string, ref: RunRef): Promise<string> {
  const directory = directoryOf(stateDir, ref);
  if (await isOwnDirectory(directory)) return directory;
  throw new EngineError({ kind: "gone", code: "RunNotFound", message: "The directory of this run is gone." });
}

/** A real directory, not a link to one, and of this user. */
export async function isOwnDirectory(directory: string): Promise<boolean> {
  try {
    const found = await lstat(directory);
    return found.isDirectory() && found.uid === process.getuid?.();
  } catch (error) {
    if (errorCode(error) === "ENOENT" || errorCode(error) === "ENOTDIR") return false;
    throw error;
  }
}

/** @throws EngineError `rejected` when others could write there */
export async function prepareStateDir(stateDir: string): Promise<void> {
  await mkdir(stateDir, { recursive: true, mode: 0o700 });
  const found = await lstat(stateDir);
  if (found.isDirectory() && found.uid === process.getuid?.() && (found.mode & 0o022) === 0) return;
  throw new EngineError({
    kind: "rejected",
    code: "UnsafeStateDir",
    message: "The state directory must be a directory of the server's user that nobody else may write to.",
  });
}

/**
 * Puts the order of a run on disk. The directory gets its name when it is complete, by a rename that fails if the
 * name is taken: whenever this process dies, the key names a whole order or none, and only ever one.
 */
export async function publishRun(
  stateDir: string,
  key: string,
  spec: RunSpec,
  input: string | undefined,
): Promise<void> {
  const draft = path.join(stateDir, `${DRAFT_PREFIX}${randomBytes(8).toString("hex")}`);
  await mkdir(draft, { mode: 0o700 });
  try {
    if (input !== undefined) await writeSynced(path.join(draft, FILES.input), input);
    await writeSynced(path.join(draft, FILES.run), JSON.stringify(spec));
    await syncDirectory(draft);
    await rename(draft, directoryOf(stateDir, { key }));
    await syncDirectory(stateDir);
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    // Somebody else published the same order first.
    if (errorCode(error) !== "ENOTEMPTY" && errorCode(error) !== "EEXIST") throw error;
  }
}

async function writeSynced(file: string, text: string): Promise<void> {
  const handle = await open(file, "wx", 0o600);
  try {
    await writeFile(handle, text);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Not the one of `files.ts`: a slow disk must not hold up the server. */
async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
