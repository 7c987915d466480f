/** From a configuration to a running server. */
import { mkdir } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import {
  createTaskEngine,
  type Logger,
  serveHttp,
  serveStdio,
  type TaskEngine,
  type TaskStore,
  WorkflowError,
} from "@taskferry/core";
import { pino } from "pino";
import { verifierFor } from "./auth.js";
import type { Configuration } from "./config.js";
import { loadWorkflow } from "./engines.js";

/** A server that runs. */
export interface RunningServer {
  /** Absent on stdio. */
  readonly url?: string;
  /** Resolves when a stdio host has closed its end. */
  readonly closed: Promise<void>;
  close(): Promise<void>;
}

/** Loads every workflow, without serving any. @throws WorkflowError `configuration` */
export function loadWorkflows(config: Configuration, configPath: string) {
  return Promise.all(config.workflows.map((workflow) => loadWorkflow(workflow, configPath)));
}

/** @throws WorkflowError `configuration`, `store_unavailable` */
export async function serve(
  config: Configuration,
  configPath: string,
  mode: "stdio" | "http",
): Promise<RunningServer> {
  // Stdout belongs to the protocol.
  const log: Logger = pino({ level: config.logLevel }, pino.destination({ dest: 2, sync: true }));
  const workflows = await loadWorkflows(config, configPath);
  const engine = await createTaskEngine({
    workflows,
    store: await openStore(config, configPath),
    log,
    ...defined({
      retention: config.retention && defined(config.retention),
      limits: config.limits && defined(config.limits),
    }),
  });
  return mode === "stdio" ? overStdio(engine, config) : overHttp(engine, config);
}

function overStdio(engine: TaskEngine, config: Configuration): RunningServer {
  const { http: _http, ...info } = config.server;
  const server = serveStdio(engine, { ...defined(info), name: info.name, version: info.version });
  return {
    closed: server.closed.then(() => engine.close()),
    async close() {
      await server.close();
      await engine.close();
    },
  };
}

async function overHttp(engine: TaskEngine, config: Configuration): Promise<RunningServer> {
  const { http, ...info } = config.server;
  const { auth, ...options } = http ?? { port: 8765, host: "127.0.0.1", path: "/mcp" };
  const verify = verifierFor(auth);
  try {
    const server = await serveHttp(engine, {
      ...defined(info),
      ...defined(options),
      name: info.name,
      version: info.version,
      ...(verify !== undefined && { verify }),
    });
    return {
      url: server.url,
      closed: new Promise(() => {}),
      async close() {
        await server.close();
        await engine.close();
      },
    };
  } catch (error) {
    await engine.close();
    throw error;
  }
}

async function openStore({ store }: Configuration, configPath: string): Promise<TaskStore> {
  if (store !== undefined && "postgres" in store) {
    const { postgresStore } = await import("@taskferry/core/postgres");
    return postgresStore({
      connectionString: store.postgres,
      ...(store.schema !== undefined && { schema: store.schema }),
    });
  }
  const state = process.env["XDG_STATE_HOME"] ?? join(homedir(), ".local", "state");
  const path =
    store === undefined
      ? join(state, "taskferry", "tasks.db")
      : store.sqlite === ":memory:"
        ? store.sqlite
        : resolve(dirname(configPath), store.sqlite);
  if (path !== ":memory:") await makeFolder(dirname(path));
  const { sqliteStore } = await import("@taskferry/core/sqlite");
  return sqliteStore({ path });
}

async function makeFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
  } catch (cause) {
    const why = (cause as NodeJS.ErrnoException).code ?? "it failed";
    throw new WorkflowError(
      "configuration",
      `The folder ${folder} for the task store cannot be made (${why}): say where tasks are kept with store.sqlite`,
      { cause },
    );
  }
}

/** Without the fields that are not set: their absence is what asks for a default. */
function defined<T extends object>(value: T): { [Key in keyof T]: Exclude<T[Key], undefined> } {
  const entries = Object.entries(value).filter(([, each]) => each !== undefined);
  return Object.fromEntries(entries) as { [Key in keyof T]: Exclude<T[Key], undefined> };
}
