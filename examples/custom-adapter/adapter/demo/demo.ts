/** A client calls a tool, is asked a question by a Restate workflow, and gets its result from another server. */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { CallToolResultSchema, ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { createTaskEngine, defineWorkflow, serveHttp } from "@taskferry/core";
import { sqliteStore } from "@taskferry/core/sqlite";
import { z } from "zod";
import { restateWorkflow } from "../src/index.js";
import { startRestate } from "../test/restate.js";
import { signup } from "./signup.js";

const restate = await startRestate();
await restate.deploy([signup]);
const home = await mkdtemp(join(tmpdir(), "taskferry-restate-demo-"));

async function serve() {
  const workflow = defineWorkflow({
    name: "sign_up",
    description: "Signs somebody up",
    input: z.object({ email: z.email() }),
    adapter: restateWorkflow({
      service: "signup",
      ingressUrl: restate.ingressUrl,
      adminUrl: restate.adminUrl,
    }),
    pollMs: 200,
  });
  const store = await sqliteStore({ path: join(home, "tasks.db") });
  const engine = await createTaskEngine({ workflows: [workflow], store });
  const server = await serveHttp(engine, { name: "restate-demo", version: "0.1.0" });
  return {
    url: server.url,
    async close() {
      await server.close();
      await engine.close();
    },
  };
}

async function connect(url: string): Promise<Client> {
  const client = new Client({ name: "demo", version: "0" }, { capabilities: { elicitation: { form: {} } } });
  client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
    console.log(`the client is asked: ${params.message}`);
    return { action: "accept", content: { plan: "pro" } };
  });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  return client;
}

/** Waits until Restate itself says that a workflow was cancelled. */
async function stopped(): Promise<void> {
  const query = "select id from sys_invocation where completion_failure = '[409] Cancelled'";
  for (const deadline = Date.now() + 20_000; ; await delay(100)) {
    const response = await fetch(`${restate.adminUrl}/query`, {
      method: "POST",
      headers: { accept: "application/json", "content-type": "application/json" },
      body: JSON.stringify({ query }),
    });
    const { rows } = (await response.json()) as { rows: unknown[] };
    if (rows.length === 1) return;
    assert.ok(Date.now() < deadline, "the workflow was not cancelled");
  }
}

try {
  const first = await serve();
  const client = await connect(first.url);
  let taskId = "";
  for await (const message of client.experimental.tasks.callToolStream(
    { name: "sign_up", arguments: { email: "ada@example.com" } },
    CallToolResultSchema,
    { task: {} },
  )) {
    if (message.type === "error") throw message.error;
    if (message.type !== "taskCreated") continue;
    taskId = message.task.taskId;
    break;
  }
  console.log(`the client has task ${taskId}`);
  await client.close();
  await first.close();
  console.log("the Taskferry server is gone; Restate goes on");

  const second = await serve();
  const again = await connect(second.url);
  const result = await again.experimental.tasks.getTaskResult(taskId, CallToolResultSchema);
  assert.deepEqual(result.structuredContent, { id: "account-of-ada@example.com", plan: "pro" });
  console.log(`the next server tells the result: ${JSON.stringify(result.structuredContent)}`);

  const { task } = (
    await again.experimental.tasks
      .callToolStream({ name: "sign_up", arguments: { email: "bob@example.com" } }, CallToolResultSchema, {
        task: {},
      })
      .next()
  ).value as { task: { taskId: string } };
  await again.experimental.tasks.cancelTask(task.taskId);
  assert.equal((await again.experimental.tasks.getTask(task.taskId)).status, "cancelled");
  await stopped();
  console.log("another task is cancelled, and so is its workflow");
  await again.close();
  await second.close();
} finally {
  await restate.stop();
  await rm(home, { recursive: true, force: true, maxRetries: 5 });
}
console.log("All as it should be.");
