/** A server with one workflow behind it, its client, and what must come of a call. */
import { equal, ok } from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createTaskEngine, defineWorkflow, isTerminal, LOCAL_OWNER, serveHttp } from "@taskferry/core";
import { sqliteStore } from "@taskferry/core/sqlite";
import { asyncFunction } from "@taskferry/function";
import { z } from "zod";

const folder = await mkdtemp(join(tmpdir(), "taskferry-app-"));
const engine = await createTaskEngine({
  store: await sqliteStore({ path: join(folder, "tasks.db") }),
  workflows: [
    defineWorkflow({
      name: "double",
      input: z.object({ n: z.number() }),
      adapter: asyncFunction(async ({ n }: { n: number }) => ({ twice: n * 2 })),
    }),
  ],
});

const created = await engine.create({
  owner: LOCAL_OWNER,
  generation: "2026-07-28",
  workflow: "double",
  arguments: { n: 21 },
});
const { task } = await engine.wait(LOCAL_OWNER, created.task.taskId, (view) => isTerminal(view.task.status), {
  timeoutMs: 30_000,
});
equal(task.status, "completed");
ok(task.outcome?.kind === "result");
equal(JSON.stringify(task.outcome.result["structuredContent"]), JSON.stringify({ twice: 42 }));

// The same over MCP, as a client that knows no Tasks sends it.
const server = await serveHttp(engine, { name: "consumer", version: "1.0.0" });
const response = await fetch(server.url, {
  method: "POST",
  headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
  body: JSON.stringify({
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: { name: "double", arguments: { n: 4 } },
  }),
});
ok((await response.text()).includes('"twice":8'));

await server.close();
await engine.close();
await rm(folder, { recursive: true });
console.log("the workflow ran, directly and over MCP");
