/** The server of this example as a child process that can be killed without warning. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Cloud } from "./cloud.js";

/** A server process, and where it serves. */
export interface ServerProcess {
  readonly url: string;
  /** SIGKILL: no farewell, no clean-up. */
  kill(): Promise<void>;
}

/** Starts the server on a free port, its data in `home`, its AWS in `cloud`, and waits until it serves. */
export async function startServer(home: string, { arns, endpoint }: Cloud): Promise<ServerProcess> {
  const script = fileURLToPath(new URL("../server.js", import.meta.url));
  const child = spawn(process.execPath, [script, "--http", "0"], {
    env: {
      ...process.env,
      ...arns,
      TASKFERRY_HOME: home,
      // All that tells the emulator from AWS: the SDK reads these by itself.
      AWS_ENDPOINT_URL_SFN: endpoint,
      AWS_ACCESS_KEY_ID: "test",
      AWS_SECRET_ACCESS_KEY: "test",
      AWS_SESSION_TOKEN: "",
      NODE_NO_WARNINGS: "1",
    },
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
