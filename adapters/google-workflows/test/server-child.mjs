// A whole server as a process of its own, to be killed: node server-child.mjs <home> <adapter options>
import { join } from "node:path";
import { createTaskEngine, defineWorkflow, serveHttp } from "@taskferry/core";
import { sqliteStore } from "@taskferry/core/sqlite";
import { googleWorkflows } from "../dist/index.js";

const [, , home = "", options = "{}"] = process.argv;
const adapter = googleWorkflows(JSON.parse(options));
const engine = await createTaskEngine({
  workflows: [defineWorkflow({ name: "run", input: { type: "object" }, adapter, pollMs: 50 })],
  store: await sqliteStore({ path: join(home, "tasks.db") }),
  // As quick as a machine: the defaults are for engines that are far away.
  timing: { tickMs: 50, leaseMs: 600, startWaitMs: 200 },
});
const server = await serveHttp(engine, { name: "child", version: "0" });
process.stdout.write(`${server.url}\n`);
