/** Starts `store-process.mjs`, and hears what it says. */
import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { onTestFinished, vi } from "vitest";
import type { NewTask } from "../../src/store/task-store.js";

const PROGRAM = fileURLToPath(new URL("./store-process.mjs", import.meta.url));

export interface Said {
  readonly ready?: number;
  readonly leased?: string;
  readonly by?: string;
  readonly created?: string;
  readonly ended?: string;
  readonly done?: boolean;
  readonly error?: string;
  readonly message?: string;
}

export interface StoreProcess {
  readonly child: ChildProcess;
  /** What it has said so far. */
  readonly said: readonly Said[];
  /** Lets it open the file and begin. */
  go(): void;
  /** Resolves when it is gone and all that it said has been heard. */
  readonly over: Promise<void>;
}

/** Starts the process and waits until it stands at the door. */
export async function storeProcess(
  work: "open" | "lease" | "write" | "insert",
  path: string,
  row?: NewTask,
  options: Pick<SpawnOptions, "uid" | "gid"> = {},
): Promise<StoreProcess> {
  const child = spawn(process.execPath, [PROGRAM, work, path, JSON.stringify(row ?? null)], {
    stdio: ["pipe", "pipe", "inherit"],
    ...options,
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const said: Said[] = [];
  const lines = createInterface({ input: child.stdout });
  lines.on("line", (line) => said.push(JSON.parse(line) as Said));
  const over = Promise.all([once(child, "exit"), once(lines, "close")]).then(() => {});
  await vi.waitUntil(() => said.length > 0 || child.exitCode !== null, { timeout: 20_000 });
  return { child, said, over, go: () => void child.stdin?.write("\n") };
}
