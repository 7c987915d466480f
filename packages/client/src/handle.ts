/** Handles: what a requestor stores to find its task again. */
import type { Generation } from "./task-client.js";

export function writeHandle(generation: Generation, reference: string): string {
  return JSON.stringify({ generation, reference });
}

/** @throws if the handle is none, or belongs to another generation than the session's */
export function readHandle(handle: string, generation: Generation): string {
  let read: { generation?: unknown; reference?: unknown };
  try {
    read = JSON.parse(handle) as typeof read;
  } catch (cause) {
    throw new Error("This is no handle of a task", { cause });
  }
  if (typeof read?.reference !== "string") throw new Error("This is no handle of a task");
  if (read.generation !== generation) {
    throw new Error(
      `The handle is of generation ${String(read.generation)}, the session speaks ${generation}: connect with { generation }`,
    );
  }
  return read.reference;
}
