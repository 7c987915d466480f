import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import type { ProcessIdentity } from "./records.js";

/** The identity of a process that runs now; `undefined` if there is none. */
export function identify(pid: number): ProcessIdentity | undefined {
  const began = processBegan(pid);
  return began === undefined ? undefined : { pid, began };
}

/** Whether exactly this process still runs: not a zombie, and not another one that was given its pid. */
export function isAlive({ pid, began }: ProcessIdentity): boolean {
  return processBegan(pid) === began;
}

/** When a live process began; `undefined` for none, and for a zombie, which only waits to be reaped. */
function processBegan(pid: number): string | undefined {
  if (!Number.isSafeInteger(pid) || pid <= 0) return undefined;
  return process.platform === "linux" ? beganFromProc(pid) : beganFromPs(pid);
}

/**
 * Fields 3 (state) and 22 (starttime) of proc_pid_stat(5), counted from behind the command name, which may hold
 * spaces. The start time counts from boot, and machines boot alike: the boot id keeps two boots apart.
 */
function beganFromProc(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (fields[0] === "Z" || fields[0] === "X") return undefined;
    return `${readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()}/${fields[19]}`;
  } catch {
    return undefined;
  }
}

function beganFromPs(pid: number): string | undefined {
  try {
    const args = ["-o", "stat=", "-o", "lstart=", "-p", String(pid)];
    const env = { PATH: "/bin:/usr/bin", LC_ALL: "C", TZ: "UTC" };
    const line = execFileSync("ps", args, {
      env,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    }).trim();
    return line.startsWith("Z") ? undefined : line.replace(/^\S+\s+/, "");
  } catch {
    return undefined;
  }
}
