/**
 * The whole server. `node dist/server.js` speaks stdio, for hosts (see mcp.json); `node dist/server.js --http 8765`
 * serves HTTP. Both at once on the same data are fine: they share their tasks.
 */
import { mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { createTaskEngine, serveHttp, serveStdio } from "@taskferry/core";
import { sqliteStore } from "@taskferry/core/sqlite";
import { workflows } from "./workflows.js";

const dataDir =
  process.env["TASKFERRY_HOME"] ?? join(homedir(), ".local", "state", "taskferry", "quickstart");
mkdirSync(dataDir, { recursive: true, mode: 0o700 });

const engine = await createTaskEngine({
  workflows: workflows(join(dataDir, "runs")),
  store: await sqliteStore({ path: join(dataDir, "tasks.db") }),
});
const info = { name: "taskferry-quickstart", version: "0.1.0" };

const http = process.argv.indexOf("--http");
if (http === -1) {
  const server = serveStdio(engine, info);
  onExit(() => server.close());
  await server.closed;
  await engine.close();
} else {
  const server = await serveHttp(engine, { ...info, port: Number(process.argv[http + 1] ?? 8765) });
  console.error(`Serving MCP at ${server.url}`);
  onExit(async () => {
    await server.close();
    await engine.close();
  });
}

function onExit(close: () => Promise<void>): void {
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.once(signal, () => void close().then(() => process.exit(0)));
  }
}
