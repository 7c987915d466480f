/** Servers as child processes. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

export interface Child {
  readonly port: number;
  readonly ids: readonly string[];
  /** What the server says of itself when asked. */
  ask(): Promise<{ reads: number; memory: number }>;
  stop(): Promise<void>;
}

export async function startChild(...args: readonly string[]): Promise<Child> {
  const script = fileURLToPath(new URL("./servers.js", import.meta.url));
  const child: ChildProcess = spawn(process.execPath, ["--expose-gc", script, ...args], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
  const iterator = lines[Symbol.asyncIterator]();
  const next = async () => JSON.parse((await iterator.next()).value as string);
  const { port, ids } = await next();
  return {
    port,
    ids,
    ask() {
      child.stdin?.write("\n");
      return next();
    },
    async stop() {
      const gone = once(child, "exit");
      child.kill("SIGKILL");
      await gone;
    },
  };
}
