import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";

/** Names one process for ever, although the system uses its pid again. JSON. */
export interface ProcessIdentity {
  readonly pid: number;
  /** When the process began, as the system counts. Empty where it does not say (it does on Linux). */
  readonly began: string;
  readonly id: string;
}

/** The identity of this process, or of one more `FunctionRuns` in it. */
export function thisProcess(): ProcessIdentity {
  return { pid: process.pid, began: processBegan(process.pid) ?? "", id: randomUUID() };
}

/**
 * Whether the process still runs, on this machine. Where the system does not say when a process began,
 * a process that got the same pid later counts as the same.
 */
export function isAlive({ pid, began }: ProcessIdentity): boolean {
  if (pid === process.pid) return false; // Ours is known by its id; another one with our pid came before us.
  try {
    process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
  return (processBegan(pid) ?? "") === began;
}

/** Field 22 of proc_pid_stat(5), `starttime`; counted from behind the command name, which may hold spaces. */
function processBegan(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
  } catch {
    return undefined;
  }
}
