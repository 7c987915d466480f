/**
 * A whole server as a process of its own: `node server-main.mjs http|stdio <home> [options as JSON]`. All processes with
 * one home share its database.
 */
import { join } from "node:path";
import { createTaskEngine, serveHttp, serveStdio } from "@taskferry/core";
import { sqliteStore } from "@taskferry/core/sqlite";
import { pino } from "pino";
import { z } from "zod";
import { fixtureWorkflows } from "./fixture-workflows.mjs";

const [mode, home, json = "{}"] = process.argv.slice(2);
const { timing, serve } = JSON.parse(json);
const log = pino({ level: "debug" }, pino.destination({ dest: 2, sync: true }));
const engine = await createTaskEngine({
  workflows: fixtureWorkflows(home),
  store: await sqliteStore({ path: join(home, "tasks.db"), changePollMs: 20 }),
  timing: { tickMs: 50, leaseMs: 600, ...timing },
  log,
});
const info = {
  name: "fixtures",
  version: "0.0.0",
  ...serve,
  setup(server) {
    const inputSchema = z.object({ name: z.string() });
    server.registerTool("ordinary", { description: "No workflow", inputSchema }, async ({ name }) => ({
      content: [{ type: "text", text: `Hello, ${name}` }],
    }));
  },
};
const server = mode === "http" ? await serveHttp(engine, info) : serveStdio(engine, info);
if (mode === "http") process.stderr.write(`Serving MCP at ${server.url}\n`);
process.once("SIGTERM", async () => {
  await server.close();
  await engine.close();
  process.stderr.write("Closed\n");
  process.exit(0);
});
if (mode === "stdio") {
  await server.closed;
  await engine.close();
}
