/** Files of a run directory, opened so that nothing the command puts there can lead elsewhere or block us. */
import { randomBytes } from "node:crypto";
import {
  closeSync,
  constants,
  fsyncSync,
  linkSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { type FileHandle, lstat, open } from "node:fs/promises";
import path from "node:path";

/** Symbolic links are refused; a FIFO in the place of a file neither blocks the open nor is read. */
const SAFE_READ = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

export function errorCode(error: unknown): string | undefined {
  return error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
}

/** Opens a regular file for reading; `undefined` if there is none by that name. */
export async function openRegular(file: string): Promise<FileHandle | undefined> {
  let handle: FileHandle;
  try {
    handle = await open(file, SAFE_READ);
  } catch (error) {
    if (["ENOENT", "ELOOP", "ENXIO", "EMLINK"].includes(errorCode(error) ?? "")) return undefined;
    throw error;
  }
  if ((await handle.stat()).isFile()) return handle;
  await handle.close();
  return undefined;
}

/** The bytes from `position` on, at most `limit`. A negative position counts from the end. */
export async function readSlice(file: string, position: number, limit: number): Promise<Buffer | undefined> {
  const handle = await openRegular(file);
  if (handle === undefined) return undefined;
  try {
    const { size } = await handle.stat();
    const from = position < 0 ? Math.max(0, size + position) : Math.min(position, size);
    const buffer = Buffer.alloc(Math.min(limit, size - from));
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, from);
    return buffer.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}

/** A small JSON file; `undefined` if it is not there. */
export async function readRecord<T>(file: string): Promise<T | undefined> {
  const bytes = await readSlice(file, 0, 8 * 1024 * 1024);
  return bytes === undefined ? undefined : (JSON.parse(bytes.toString("utf8")) as T);
}

export async function exists(file: string): Promise<boolean> {
  try {
    await lstat(file);
    return true;
  } catch (error) {
    if (errorCode(error) === "ENOENT") return false;
    throw error;
  }
}

/** Writes a file that is there whole or not at all, also after a power cut. Replaces an older one. */
export function writeWhole(file: string, text: string): void {
  renameSync(writeDraft(file, text, true), file);
  syncDirectory(path.dirname(file));
}

/** The same without the wait for the disk, for what is worth nothing after a power cut anyway. */
export function writeSwiftly(file: string, text: string): void {
  renameSync(writeDraft(file, text, false), file);
}

/** Like {@link writeWhole}, but only the first writer succeeds. @returns whether this one was the first */
export function writeOnce(file: string, text: string): boolean {
  const draft = writeDraft(file, text, true);
  try {
    // A link, unlike O_EXCL, shows the file only when its content is in it.
    linkSync(draft, file);
    syncDirectory(path.dirname(file));
    return true;
  } catch (error) {
    if (errorCode(error) === "EEXIST") return false;
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

function syncDirectory(directory: string): void {
  const fd = openSync(directory, constants.O_RDONLY);
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

function writeDraft(file: string, text: string, flush: boolean): string {
  const draft = path.join(path.dirname(file), `.${randomBytes(8).toString("hex")}`);
  writeFileSync(draft, text, { mode: 0o600, flag: "wx", flush });
  return draft;
}
