/**
 * A replica as a process of its own: `node server-main.mjs <home> <options as JSON>`. All replicas on one database share
 * their tasks; runs at engines of files live in the home. With `newer`, it is of a release that has one more migration.
 */
import { createTaskEngine, serveHttp } from "@taskferry/core";
import { postgresStore } from "@taskferry/core/postgres";
import { pino } from "pino";
import { MIGRATIONS } from "../../dist/store/migrations.js";
import { fixtureWorkflows } from "../support/fixture-workflows.mjs";

const [home, json] = process.argv.slice(2);
const { url, schema, newer, timing, limits } = JSON.parse(json);
if (newer) MIGRATIONS.push(() => [`ALTER TABLE tasks ADD COLUMN "note" TEXT NOT NULL DEFAULT 'new'`]);
const log = pino({ level: "info" }, pino.destination({ dest: 2, sync: true }));
const engine = await createTaskEngine({
  workflows: fixtureWorkflows(home),
  store: await postgresStore({ connectionString: url, schema, maxConnections: 4 }),
  timing: { tickMs: 50, leaseMs: 600, startWaitMs: 150, ...timing },
  limits,
  log,
});
const server = await serveHttp(engine, { name: "replica", version: "0.0.0" });
process.stderr.write(`Serving MCP at ${server.url}\n`);
process.once("SIGTERM", async () => {
  await server.close();
  await engine.close();
  process.stderr.write("Closed\n");
  process.exit(0);
});
