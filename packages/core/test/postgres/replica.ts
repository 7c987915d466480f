/** Server processes on one PostgreSQL, as separate machines would be. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { onTestFinished } from "vitest";
import type { TestPostgres } from "../store/databases.js";
import { MODERN_CAPABILITIES } from "../support/clients.js";
import { tempDir } from "../support/engines.js";
import { Listen } from "../support/listening.js";
import { type Json, modernRequest } from "../support/raw-client.js";
import { until } from "../support/server-process.js";

const PROGRAM = fileURLToPath(new URL("./server-main.mjs", import.meta.url));

export interface ReplicaOptions {
  readonly timing?: object;
  readonly limits?: object;
  /** Of a release that knows one more migration. */
  readonly newer?: boolean;
}

/** One server process. */
export class Replica {
  stderr = "";
  url = "";

  constructor(readonly child: ChildProcess) {
    child.stderr?.setEncoding("utf8").on("data", (chunk) => {
      this.stderr += chunk;
      this.url ||= /Serving MCP at (\S+)/.exec(this.stderr)?.[1] ?? "";
    });
  }

  get pid(): number {
    return this.child.pid ?? 0;
  }

  get lives(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  /** @returns its exit code; `null` for one that was killed */
  async end(signal: NodeJS.Signals = "SIGKILL"): Promise<number | null> {
    if (!this.lives) return this.child.exitCode;
    const gone = once(this.child, "exit");
    this.child.kill(signal);
    return (await gone)[0];
  }

  request(method: string, params: Json = {}) {
    return modernRequest(this.url, method, params, { capabilities: MODERN_CAPABILITIES });
  }

  /** Starts a task of 2026-07-28. @returns its id */
  async start(name: string, args: Json = {}): Promise<string> {
    const { result, error } = await this.request("tools/call", { name, arguments: args });
    if (result?.taskId === undefined) throw new Error(`No task: ${JSON.stringify(error ?? result)}`);
    return result.taskId;
  }

  async get(taskId: string): Promise<Json> {
    return (await this.request("tasks/get", { taskId })).result;
  }

  /** GET of `/ready` or `/health`. */
  async status(path: string): Promise<number> {
    return (await fetch(new URL(path, this.url))).status;
  }

  /** Opens a listen for tasks, and resolves when the server has acknowledged it. */
  async listen(taskIds: readonly string[]): Promise<Listen> {
    const abort = new AbortController();
    onTestFinished(() => abort.abort());
    const listen = new Listen("listen", () => abort.abort());
    const meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": { name: "raw", version: "0" },
      "io.modelcontextprotocol/clientCapabilities": MODERN_CAPABILITIES,
    };
    const params = { notifications: { taskIds }, _meta: meta };
    const response = await fetch(this.url, {
      method: "POST",
      signal: abort.signal,
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "subscriptions/listen",
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: listen.id, method: "subscriptions/listen", params }),
    });
    void pump(response, listen);
    await listen.until(() => listen.messages[0]);
    return listen;
  }
}

async function pump(response: Response, listen: Listen): Promise<void> {
  let rest = "";
  try {
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream() as Json) as Json) {
      rest += chunk;
      const frames = rest.split("\n\n");
      rest = frames.pop() ?? "";
      for (const frame of frames) {
        const data = frame.split("\n").filter((line) => line.startsWith("data:"));
        if (data.length > 0) listen.push(JSON.parse(data.map((line) => line.slice(5)).join("\n")));
      }
    }
  } catch {
    // Cut off, by us or by the server.
  }
  listen.end();
}

/** A home and a fresh schema, for as many replicas as a test wants. */
export class Site {
  constructor(
    readonly home: string,
    readonly schema: string,
    readonly url: string,
  ) {}

  static async on(database: Pick<TestPostgres, "create">): Promise<Site> {
    const [home, { schema, url }] = [await tempDir(), await database.create()];
    return new Site(home, schema, url);
  }

  /** Starts a process, and does not wait for anything. */
  spawn(options: ReplicaOptions = {}): Replica {
    const given = JSON.stringify({ url: this.url, schema: this.schema, ...options });
    const child = spawn(process.execPath, [PROGRAM, this.home, given], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    const replica = new Replica(child);
    onTestFinished(async () => void (await replica.end()));
    return replica;
  }

  /** A replica that serves. */
  async replica(options: ReplicaOptions = {}): Promise<Replica> {
    const replica = this.spawn(options);
    await until(() => {
      if (replica.url === "") throw new Error(`The replica does not serve:\n${replica.stderr}`);
    });
    return replica;
  }

  replicas(count: number, options: ReplicaOptions = {}): Promise<Replica[]> {
    return Promise.all(Array.from({ length: count }, () => this.replica(options)));
  }

  /** Asks the database itself. Tables are found without their schema. */
  async query<Row extends pg.QueryResultRow>(sql: string, values: unknown[] = []): Promise<Row[]> {
    const client = new pg.Client({ connectionString: this.url, options: `-c search_path=${this.schema}` });
    await client.connect();
    try {
      return (await client.query<Row>(sql, values)).rows;
    } finally {
      await client.end();
    }
  }

  /** Breaks the connections that listen for changes. @returns how many there were */
  async cutListeners(): Promise<number> {
    const listening = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'";
    return (await this.query(listening)).length;
  }
}
