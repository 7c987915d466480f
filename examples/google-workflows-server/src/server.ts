/**
 * Two workflows of Google Cloud as MCP tools: one that takes long, one that asks for an approval.
 *
 *   GOOGLE_CLOUD_PROJECT=my-project node dist/server.js
 *
 * speaks stdio, for hosts that start their servers; with `--http 8765` it serves HTTP on loopback.
 */
import { mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { createTaskEngine, defineWorkflow, serveHttp, serveStdio } from "@taskferry/core";
import { sqliteStore } from "@taskferry/core/sqlite";
import { googleWorkflows } from "@taskferry/google-workflows";
import { z } from "zod";
import { google } from "./google.js";

const shipOrder = defineWorkflow({
  name: "ship_order",
  title: "Ship an order",
  description: "Ships an order and waits until it has arrived. Takes minutes.",
  input: z.object({
    orderId: z.string(),
    item: z.string(),
    quantity: z.int().min(1).default(1),
    secondsPerStep: z.int().min(0).max(3600).default(20).describe("How long each step takes"),
  }),
  output: z.object({
    orderId: z.string(),
    item: z.string(),
    quantity: z.int(),
    trackingId: z.string(),
  }),
  adapter: googleWorkflows({ ...google, workflow: "ship-order" }),
  pollMs: 1000,
});

const refundOrder = defineWorkflow({
  name: "refund_order",
  title: "Refund an order",
  description: "Refunds an order after a human has approved it.",
  input: z.object({ orderId: z.string(), amount: z.number().positive().describe("In EUR") }),
  // The callback that the workflow waits for becomes a question to the human in front of the client.
  adapter: googleWorkflows({ ...google, workflow: "refund-order", questions: true }),
  pollMs: 1000,
  annotations: { destructiveHint: true },
});

const home = process.env["TASKFERRY_HOME"] ?? join(homedir(), ".local", "state", "taskferry", "google");
mkdirSync(home, { recursive: true, mode: 0o700 });
const engine = await createTaskEngine({
  workflows: [shipOrder, refundOrder],
  store: await sqliteStore({ path: join(home, "tasks.db") }),
});
const info = { name: "taskferry-google-workflows", version: "0.1.0" };
// One path for both: deliveries wake every task of this engine.
const webhooks = google.push ? { "/events": "ship_order" } : {};

const http = process.argv.indexOf("--http");
if (http === -1) {
  const server = serveStdio(engine, info);
  onSignal(() => server.close());
  await server.closed;
  await engine.close();
} else {
  const server = await serveHttp(engine, { ...info, webhooks, port: Number(process.argv[http + 1] ?? 8765) });
  console.error(`Serving MCP at ${server.url}`);
  onSignal(() => server.close().then(() => engine.close()));
}

function onSignal(close: () => Promise<void>): void {
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => void close());
}
