/** Servers in the test's own process: over HTTP on a free port, and over a pair of pipes as stdio has them. */
import { PassThrough } from "node:stream";
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client";
import type { McpServer } from "@modelcontextprotocol/server";
import { onTestFinished } from "vitest";
import {
  type ServeHttpOptions,
  type ServeStdioOptions,
  type StdioServer,
  serveHttp,
  serveStdio,
  type TaskEngine,
  type TaskEngineOptions,
} from "../../src/index.js";
import { tempDir, testEngine } from "./engines.js";
import { fixtureWorkflows } from "./fixture-workflows.mjs";
import { type Json, RawClient } from "./raw-client.js";

const INFO = { name: "fixtures", version: "0.0.0" };
/** As quick as a machine: the defaults are for engines that are far away. */
const QUICK = { tickMs: 50, readWaitMs: 500 };

/** An engine with the fixture workflows, and the folder that their gates go into. */
export async function fixtureEngine(
  options: Partial<TaskEngineOptions> = {},
): Promise<{ engine: TaskEngine; home: string }> {
  const home = await tempDir();
  const workflows = options.workflows ?? fixtureWorkflows(home);
  const engine = await testEngine({ ...options, workflows, timing: { ...QUICK, ...options.timing } });
  return { engine, home };
}

/** Serves an engine over HTTP, and closes when the test ends. */
export async function overHttp(engine: TaskEngine, options: Partial<ServeHttpOptions> = {}) {
  const server = await serveHttp(engine, { ...INFO, ...options });
  onTestFinished(() => server.close());
  return server;
}

/** Serves an engine over pipes. */
export function overStdio(
  engine: TaskEngine,
  options: Partial<ServeStdioOptions> = {},
): { server: StdioServer; transport: Transport; mcpServers: McpServer[] } {
  const toServer = new PassThrough();
  const toClient = new PassThrough();
  const mcpServers: McpServer[] = [];
  const server = serveStdio(engine, {
    ...INFO,
    ...options,
    setup: (made) => void mcpServers.push(made),
    stdin: toServer as unknown as NodeJS.ReadStream,
    stdout: toClient as unknown as NodeJS.WriteStream,
  });
  onTestFinished(() => server.close());
  return { server, transport: new PipeTransport(toClient, toServer), mcpServers };
}

/** The client's end of a pair of pipes. */
class PipeTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: Transport["onmessage"];

  constructor(
    private readonly input: PassThrough,
    private readonly output: PassThrough,
  ) {}

  async start(): Promise<void> {
    let rest = "";
    this.input.setEncoding("utf8").on("data", (chunk: string) => {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) this.onmessage?.(JSON.parse(line));
    });
    this.input.on("close", () => this.onclose?.());
  }

  async send(message: JSONRPCMessage): Promise<void> {
    this.output.write(`${JSON.stringify(message)}\n`);
  }

  async close(): Promise<void> {
    this.output.end();
  }
}

/** The params of a 2026-07-28 request. */
export function modern(params: Json, capabilities: Json): Json {
  return {
    ...params,
    _meta: {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": { name: "raw", version: "0" },
      "io.modelcontextprotocol/clientCapabilities": capabilities,
      ...params._meta,
    },
  };
}

/** A 2026-07-28 client by hand over pipes: there is no handshake. */
export async function modernPipe(transport: Transport): Promise<RawClient> {
  const client = new RawClient(transport);
  await transport.start();
  return client;
}
