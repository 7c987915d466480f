/**
 * Two state machines as MCP tools: one that takes long, one that asks for an approval.
 *
 *   REPORT_MACHINE_ARN=arn:aws:states:… DEPLOY_MACHINE_ARN=arn:aws:states:… node dist/server.js
 *
 * speaks stdio, for hosts that start their servers; with `--http 8765` it serves HTTP on loopback.
 */
import { mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { createTaskEngine, defineWorkflow, serveHttp, serveStdio } from "@taskferry/core";
import { sqliteStore } from "@taskferry/core/sqlite";
import { stepFunctions } from "@taskferry/step-functions";
import { z } from "zod";

const writeReport = defineWorkflow({
  name: "write_report",
  title: "Write a report",
  description: "Writes a report, chapter by chapter. Takes minutes.",
  input: z.object({
    topic: z.string(),
    chapters: z.array(z.string()).max(100).describe("Their titles"),
    seconds: z.int().min(0).max(3600).default(20).describe("How long each chapter takes"),
  }),
  output: z.object({
    topic: z.string(),
    chapters: z.array(z.object({ title: z.string(), pages: z.int() })),
  }),
  adapter: stepFunctions({ stateMachineArn: required("REPORT_MACHINE_ARN") }),
  pollMs: 1000,
});

const deploy = defineWorkflow({
  name: "deploy",
  title: "Deploy a service",
  description: "Deploys a service after asking where to.",
  input: z.object({ service: z.string().regex(/^[a-z][a-z0-9-]*$/), version: z.string() }),
  adapter: stepFunctions({
    stateMachineArn: required("DEPLOY_MACHINE_ARN"),
    // Only this state asks people; other states may give their tokens to machines.
    questions: { states: ["Approve"] },
  }),
  pollMs: 1000,
  annotations: { destructiveHint: true },
});

const home = process.env["TASKFERRY_HOME"] ?? join(homedir(), ".local", "state", "taskferry", "aws");
mkdirSync(home, { recursive: true, mode: 0o700 });
const engine = await createTaskEngine({
  workflows: [writeReport, deploy],
  store: await sqliteStore({ path: join(home, "tasks.db") }),
});
const info = { name: "taskferry-step-functions", version: "0.1.0" };

const http = process.argv.indexOf("--http");
if (http === -1) {
  const server = serveStdio(engine, info);
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => void server.close());
  await server.closed;
  await engine.close();
} else {
  const server = await serveHttp(engine, { ...info, port: Number(process.argv[http + 1] ?? 8765) });
  console.error(`Serving MCP at ${server.url}`);
  const close = () => server.close().then(() => engine.close());
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => void close());
}

function required(name: string): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`Set ${name} to the ARN of a state machine`);
  return value;
}
