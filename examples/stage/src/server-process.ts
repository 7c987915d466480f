/** An example's server as a child process that can be killed without warning. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/** A server process, and where it serves. */
export interface ServerProcess {
  readonly url: string;
  /** SIGKILL: no farewell, no clean-up. */
  kill(): Promise<void>;
}

/**
 * Starts a server, and waits until it serves.
 * @param script the file: URL of the server's main module
 * @param environment beside this process's own, e.g. `TASKFERRY_HOME`
 * @param port where to serve. @default a free one
 * @throws with what the server said, if it ends before it serves
 */
export async function startServer(
  script: URL,
  environment: Readonly<Record<string, string>>,
  port = 0,
): Promise<ServerProcess> {
  const child = spawn(process.execPath, [fileURLToPath(script), "--http", String(port)], {
    env: { ...process.env, ...environment },
    stdio: ["ignore", "ignore", "pipe"],
  });
  return {
    url: await servedUrl(child),
    async kill() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = once(child, "exit");
      child.kill("SIGKILL");
      await gone;
    },
  };
}

async function servedUrl(child: ChildProcess): Promise<string> {
  let said = "";
  child.stderr?.setEncoding("utf8");
  for await (const chunk of child.stderr ?? []) {
    said += chunk;
    const url = /Serving MCP at (\S+)/.exec(said)?.[1];
    if (url !== undefined) {
      child.stderr?.resume();
      return url;
    }
  }
  throw new Error(`The server did not start:\n${said}`);
}
