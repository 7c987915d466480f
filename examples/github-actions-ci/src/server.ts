/**
 * The whole server.
 *
 *   GITHUB_REPOSITORY=octo/hello GITHUB_TOKEN=… node dist/server.js
 *
 * speaks stdio, for hosts that start their servers; with `--http 8765` it serves HTTP on loopback, webhooks included.
 */
import { mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { createTaskEngine, serveHttp, serveStdio } from "@taskferry/core";
import { sqliteStore } from "@taskferry/core/sqlite";
import { workflows } from "./workflows.js";

const { GITHUB_REPOSITORY, GITHUB_TOKEN, GITHUB_API_URL, GITHUB_WEBHOOK_SECRET, TASKFERRY_HOME } =
  process.env;
const [owner, repo] = GITHUB_REPOSITORY?.split("/") ?? [];
if (!owner || !repo) throw new Error("Set GITHUB_REPOSITORY to owner/name");

const home = TASKFERRY_HOME ?? join(homedir(), ".local", "state", "taskferry", `${owner}-${repo}`);
mkdirSync(home, { recursive: true, mode: 0o700 });

const engine = await createTaskEngine({
  workflows: await workflows({
    owner,
    repo,
    ...(GITHUB_TOKEN && { auth: GITHUB_TOKEN }),
    ...(GITHUB_API_URL && { baseUrl: GITHUB_API_URL }),
    ...(GITHUB_WEBHOOK_SECRET && { webhookSecret: GITHUB_WEBHOOK_SECRET }),
  }),
  store: await sqliteStore({ path: join(home, "tasks.db") }),
});
const info = { name: "github-actions-ci", version: "0.1.0" };

const http = process.argv.indexOf("--http");
if (http === -1) {
  const server = serveStdio(engine, info);
  onSignal(() => server.close());
  await server.closed;
  await engine.close();
} else {
  const port = Number(process.argv[http + 1] ?? 8765);
  // One path for all tools: a delivery wakes every task of this engine.
  const webhooks = GITHUB_WEBHOOK_SECRET ? { "/webhooks/github": "watch_run" } : {};
  const server = await serveHttp(engine, { ...info, port, webhooks });
  console.error(`Serving MCP at ${server.url}`);
  onSignal(() => server.close().then(() => engine.close()));
}

function onSignal(close: () => Promise<void>): void {
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => void close());
}
