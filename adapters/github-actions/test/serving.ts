/** The adapter behind a whole Taskferry server: in this process, or in one that can be killed. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  createTaskEngine,
  defineWorkflow,
  serveHttp,
  type TaskEngine,
  type Timing,
  type WorkflowAdapter,
} from "@taskferry/core";
import { sqliteStore } from "@taskferry/core/sqlite";
import { expect, onTestFinished } from "vitest";
import type { GitHubActionsOptions } from "../src/index.js";
import type { Session } from "./clients.js";

/** Whatever the adapter makes of it. */
const ANY = { type: "object" };

const CHILD = fileURLToPath(new URL("server-child.mjs", import.meta.url));

/** A folder for a database. */
export async function home(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "taskferry-github-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}

/** Serves `run_ci` from this process. */
export async function serveHere(
  adapter: WorkflowAdapter,
  options: { readonly timing?: Partial<Timing>; readonly webhooks?: Record<string, string> } = {},
): Promise<{ readonly engine: TaskEngine; readonly url: string }> {
  const engine = await createTaskEngine({
    workflows: [defineWorkflow({ name: "run_ci", input: ANY, adapter, pollMs: 20 })],
    store: await sqliteStore({ path: join(await home(), "tasks.db") }),
    timing: { tickMs: 20, startWaitMs: 500, ...options.timing },
  });
  const { webhooks } = options;
  const server = await serveHttp(engine, { name: "here", version: "0", ...(webhooks && { webhooks }) });
  onTestFinished(async () => {
    await server.close();
    await engine.close();
  });
  return { engine, url: server.url };
}

export interface ServerProcess {
  readonly url: string;
  /** SIGKILL: no farewell, no clean-up. */
  kill(): Promise<void>;
}

/** Serves `run_ci` from a process of its own, its tasks in `folder`. */
export async function serveProcess(
  folder: string,
  options: GitHubActionsOptions,
  timing: Partial<Timing> = {},
): Promise<ServerProcess> {
  expect(existsSync(new URL("../dist/index.js", import.meta.url)), "run `tsc -b` first").toBe(true);
  const child = spawn(process.execPath, [CHILD, folder, JSON.stringify(options), JSON.stringify(timing)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, "exit");
    child.kill("SIGKILL");
    await gone;
  };
  onTestFinished(kill);
  const [url] = await once(child.stdout, "data");
  return { url: String(url).trim(), kill };
}

/** A session that is closed when the test is over. */
export async function session(connect: (url: string) => Promise<Session>, url: string): Promise<Session> {
  const opened = await connect(url);
  onTestFinished(() => opened.close().catch(() => {}));
  return opened;
}
