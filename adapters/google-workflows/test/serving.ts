/** The adapter behind a whole Taskferry server: in this process, or in one that can be killed. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createTaskEngine, defineWorkflow, serveHttp, type Timing } from "@taskferry/core";
import { sqliteStore } from "@taskferry/core/sqlite";
import { expect, onTestFinished } from "vitest";
import type { Cloud, CloudExecution, Script } from "../emulator/src/cloud.js";
import type { GoogleWorkflowsOptions } from "../src/index.js";
import { type Answerer, CLIENTS, type ClientGeneration, type Session } from "./clients.js";
import { type Harness, harness, LOCATION, PROJECT, type Transport } from "./harness.js";

const CHILD = fileURLToPath(new URL("server-child.mjs", import.meta.url));

/** Each transport and each generation, but not each with each: neither knows of the other. */
export const WAYS = [
  { transport: "gRPC", generation: "2026-07-28" },
  { transport: "REST", generation: "2025-11-25" },
] as const satisfies readonly { transport: Transport; generation: ClientGeneration }[];

/** A cloud with the workflow `orders`. Without a script, its executions go on until the test ends them. */
export async function openCloud(transport: Transport, script?: Script): Promise<Harness> {
  const opened = await harness(transport);
  onTestFinished(() => opened.close());
  opened.cloud.deploy({ id: "orders", location: LOCATION, ...(script && { script }) });
  return opened;
}

export interface Served {
  readonly cloud: Cloud;
  /** A session of its own, closed when the test is over. */
  connect(generation: ClientGeneration, answerer?: Answerer): Promise<Session>;
}

/** Serves the workflow `orders` as the tool `run` from this process. */
export async function serve(
  transport: Transport,
  options: {
    readonly adapter?: Partial<GoogleWorkflowsOptions>;
    readonly timing?: Partial<Timing>;
    readonly script?: Script;
  } = {},
): Promise<Served> {
  const { cloud, adapter } = await openCloud(transport, options.script);
  const engine = await createTaskEngine({
    workflows: [
      defineWorkflow({
        name: "run",
        input: { type: "object" },
        // The lists of the protocol server lag only where a test wants them to.
        adapter: adapter({ find: { appearsWithinMs: 1 }, ...options.adapter }),
        pollMs: 20,
      }),
    ],
    store: await sqliteStore({ path: join(await home(), "tasks.db") }),
    timing: { tickMs: 20, startWaitMs: 200, ...options.timing },
  });
  const server = await serveHttp(engine, { name: "here", version: "0" });
  onTestFinished(async () => {
    await server.close();
    await engine.close();
  });
  return { cloud, connect: (generation, answerer) => session(generation, server.url, answerer) };
}

/** A folder for a database. */
export async function home(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "taskferry-google-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}

export interface ServerProcess {
  readonly url: string;
  /** SIGKILL: no farewell, no clean-up. */
  kill(): Promise<void>;
}

/** Serves the same from a process of its own, its tasks in `folder`. */
export async function serveProcess(
  folder: string,
  { server }: Harness,
  transport: Transport,
): Promise<ServerProcess> {
  expect(existsSync(new URL("../dist/index.js", import.meta.url)), "run `tsc -b` first").toBe(true);
  const options: GoogleWorkflowsOptions = {
    project: PROJECT,
    location: LOCATION,
    workflow: "orders",
    apiEndpoint: server.grpcEndpoint,
    restEndpoint: server.restEndpoint,
    fallback: transport === "REST",
    insecure: true,
  };
  const child = spawn(process.execPath, [CHILD, folder, JSON.stringify(options)], {
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

export async function session(
  generation: ClientGeneration,
  url: string,
  answerer?: Answerer,
): Promise<Session> {
  const opened = await CLIENTS[generation](url, answerer);
  onTestFinished(() => opened.close().catch(() => {}));
  return opened;
}

/** The one execution that there is, or will be: a task is told before its start is through. Fails when there are more. */
export async function theExecution(cloud: Cloud): Promise<CloudExecution> {
  await cloud.until(() => cloud.executions.size > 0);
  expect(cloud.executions.size, "executions").toBe(1);
  return [...cloud.executions.values()][0] as CloudExecution;
}

/** Looks until the task says so. */
export async function lookUntil(
  client: Session,
  handle: string,
  satisfies: (seen: { readonly status: string; readonly message: string }) => boolean,
): Promise<{ readonly status: string; readonly message: string }> {
  for (;;) {
    const { status, statusMessage: message = "" } = await client.look(handle);
    if (satisfies({ status, message })) return { status, message };
    await delay(20);
  }
}

/** Looks until the task has ended: a client that has cancelled does not wait for the server's word itself. */
export async function endStatus(client: Session, handle: string): Promise<string> {
  const ended = ["completed", "failed", "cancelled"];
  return (await lookUntil(client, handle, ({ status }) => ended.includes(status))).status;
}
