/**
 * The servers that are measured, each in a process of its own: `node servers.js taskferry|sdk|node [tasks]`.
 * Prints its port and the task ids, then what it is asked for on stdin.
 */
import { mkdtempSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { createTaskEngine, defineWorkflow, LOCAL_OWNER, serveHttp } from "@taskferry/core";
import { sqliteStore } from "@taskferry/core/sqlite";
import { z } from "zod";
import { UNLIMITED } from "./engine.js";
import { fakeEngine } from "./fake.js";

// Whoever measures has gone.
process.stdin.on("end", () => process.exit()).resume();

const [kind, count = "1", pollMs = "2000"] = process.argv.slice(2);
const tell = (message: object) => process.stdout.write(`${JSON.stringify(message)}\n`);
const memory = () => {
  globalThis.gc?.();
  return process.memoryUsage().rss;
};

const TASK = {
  taskId: "known",
  status: "working",
  statusMessage: "step 1",
  createdAt: new Date(0).toISOString(),
  lastUpdatedAt: new Date(0).toISOString(),
  ttlMs: null,
  pollIntervalMs: 2000,
};

if (kind === "taskferry") {
  const fake = fakeEngine();
  const before = memory();
  const engine = await createTaskEngine({
    store: await sqliteStore({
      path: join(mkdtempSync(join(tmpdir(), "taskferry-bench-")), "tasks.db"),
      synchronous: "NORMAL",
    }),
    workflows: [defineWorkflow({ name: "flow", adapter: fake.adapter, pollMs: Number(pollMs) })],
    limits: UNLIMITED,
  });
  const server = await serveHttp(engine, { name: "bench", version: "0" });
  const ids: string[] = [];
  for (let i = 0; i < Number(count); i++) {
    const call = { owner: LOCAL_OWNER, generation: "2026-07-28", workflow: "flow", arguments: {} } as const;
    ids.push((await engine.create(call)).task.taskId);
  }
  tell({ port: server.port, ids, before });
  process.stdin.on("data", () => tell({ reads: fake.reads, memory: memory() }));
} else if (kind === "sdk") {
  // A bare SDK server: its handler answers from a Map.
  const tasks = new Map([[TASK.taskId, TASK]]);
  const handler = createMcpHandler(() => {
    const mcp = new McpServer(
      { name: "bench", version: "0" },
      { capabilities: { tools: {}, extensions: { "io.modelcontextprotocol/tasks": {} } } },
    );
    mcp.registerTool("flow", { inputSchema: z.object({}) }, async () => ({ content: [] }));
    mcp.server.setRequestHandler(
      "tasks/get",
      { params: z.looseObject({ taskId: z.string() }) },
      async ({ taskId }) => ({
        resultType: "complete",
        ...tasks.get(taskId),
      }),
    );
    return mcp;
  });
  const server = createServer(toNodeHandler(handler) as Parameters<typeof createServer>[1]);
  server.listen(0, "127.0.0.1", () =>
    tell({ port: (server.address() as { port: number }).port, ids: [TASK.taskId] }),
  );
} else {
  // A bare node:http handler that parses the request and answers the same JSON.
  const server = createServer((req, res) => {
    const chunks: Buffer[] = [];
    req.on("data", (chunk: Buffer) => chunks.push(chunk));
    req.on("end", () => {
      const { id } = JSON.parse(Buffer.concat(chunks).toString("utf8"));
      const result = {
        resultType: "complete",
        ...TASK,
        _meta: { "io.modelcontextprotocol/serverInfo": { name: "bench", version: "0" } },
      };
      res
        .writeHead(200, { "content-type": "application/json" })
        .end(JSON.stringify({ result, jsonrpc: "2.0", id }));
    });
  });
  server.listen(0, "127.0.0.1", () =>
    tell({ port: (server.address() as { port: number }).port, ids: [TASK.taskId] }),
  );
}
