/** The server of this example as a child process that can be killed without warning. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/** A server process, and where it serves. */
export interface ServerProcess {
  readonly url: string;
  /** SIGKILL: no farewell, no clean-up. */
  kill(): Promise<void>;
}

/** Starts the server on a free port, its data in `home`, and waits until it serves. */
export async function startServer(
  home: string,
  environment: Readonly<Record<string, string>>,
): Promise<ServerProcess> {
  const script = fileURLToPath(new URL("../server.js", import.meta.url));
  const child = spawn(process.execPath, [script, "--http", "0"], {
    env: { ...process.env, ...environment, TASKFERRY_HOME: home, NODE_NO_WARNINGS: "1" },
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
