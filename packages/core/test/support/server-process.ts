/** Servers as processes of their own, which tests may kill. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { onTestFinished, vi } from "vitest";

export const SERVER_MAIN = fileURLToPath(new URL("./server-main.mjs", import.meta.url));
const WAIT = { timeout: 15_000, interval: 10 };

export interface ServerOptions {
  readonly timing?: object;
  readonly serve?: object;
}

/** A serving process. */
export class ServerProcess {
  stderr = "";
  constructor(
    readonly child: ChildProcess,
    readonly url: string,
  ) {}

  /** SIGKILL: no farewell. */
  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<number | null> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return this.child.exitCode;
    const gone = once(this.child, "exit");
    this.child.kill(signal);
    return (await gone)[0];
  }
}

/** An HTTP server on this home, killed at the latest when the test ends. */
export async function httpProcess(home: string, options: ServerOptions = {}): Promise<ServerProcess> {
  const child = spawn(process.execPath, [SERVER_MAIN, "http", home, JSON.stringify(options)], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(async () => void (await server.kill()));
  let said = "";
  child.stderr.setEncoding("utf8");
  let server = new ServerProcess(child, "");
  child.stderr.on("data", (chunk) => {
    said += chunk;
    server.stderr = said;
  });
  const url = await vi.waitFor(() => {
    const found = /Serving MCP at (\S+)/.exec(said)?.[1];
    if (found === undefined) throw new Error(`The server does not serve:\n${said}`);
    return found;
  }, WAIT);
  server = new ServerProcess(child, url);
  server.stderr = said;
  return server;
}

/** What a host starts: a server process on this home, over its stdin and stdout. */
export function stdioServer(home: string, options: ServerOptions = {}): StdioClientTransport {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [SERVER_MAIN, "stdio", home, JSON.stringify(options)],
    stderr: "ignore",
  });
  onTestFinished(() => transport.close());
  return transport;
}

/** A stdio server process with its raw pipes, for what no transport would send. */
export function stdioProcess(home: string, options: ServerOptions = {}) {
  const child = spawn(process.execPath, [SERVER_MAIN, "stdio", home, JSON.stringify(options)], {
    stdio: ["pipe", "pipe", "pipe"],
  });
  const process_ = { child, stdout: "", stderr: "" };
  child.stdout.setEncoding("utf8").on("data", (chunk) => (process_.stdout += chunk));
  child.stderr.setEncoding("utf8").on("data", (chunk) => (process_.stderr += chunk));
  child.stdin.on("error", () => {});
  onTestFinished(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, "exit");
    child.kill("SIGKILL");
    await gone;
  });
  return process_;
}

/** Opens a gate of a fixture workflow, first half included. */
export function open(gate: string): void {
  for (const path of [`${gate}.1`, gate]) if (!existsSync(path)) writeFileSync(path, "");
}

/** A call that the engine of files has written down. */
export interface EngineCall {
  readonly operation: string;
  readonly key: string;
  readonly pid: number;
  readonly at: number;
}

/** What the engine of files has been called for, in order. */
export function calls(home: string, engine: string, operation: string): EngineCall[] {
  const path = join(home, engine, "calls.log");
  if (!existsSync(path)) return [];
  return readFileSync(path, "utf8")
    .split("\n")
    .map((line) => line.split(" "))
    .filter(([called]) => called === operation)
    .map(([, key, pid, at]) => ({ operation, key: key!, pid: Number(pid), at: Number(at) }));
}

/** Ends a run at the engine of files, by its key. */
export function endRun(home: string, engine: string, key: string, how = "completed"): void {
  writeFileSync(join(home, engine, "runs", key, "end"), how);
}

/** Holds calls of the engine of files back: `hold-start`, `hold-started` (the run is there already), `hold-read`. */
export function hold(home: string, engine: string, what: string): void {
  writeFileSync(join(home, engine, what), "");
}

export function release(home: string, engine: string, what: string): void {
  rmSync(join(home, engine, what), { force: true });
}

/** Looks until it does not throw. */
export const until = <T>(look: () => T | Promise<T>) => vi.waitFor(look, WAIT);
