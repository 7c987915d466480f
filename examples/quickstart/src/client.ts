/**
 * The whole story: clients of three generations start local commands as tasks, lose their connection, the server is
 * killed, and new sessions fetch the results from the next server. Then the questions, and a client that knows no tasks.
 */
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { resultFromTaskOutcome, type SerializedTaskReference } from "@modelcontextprotocol/ext-tasks/client";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { CallToolResultSchema, ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { check, startServer, tell, until, verdict } from "@taskferry/example-stage";
import { DraftClient } from "./draft-client.js";
import { modernSession } from "./modern-client.js";

const repository = fileURLToPath(new URL("../../../", import.meta.url));
const files = [
  "LICENSE",
  "vitest.config.ts",
  "package.json",
  "tsconfig.base.json",
  "pnpm-workspace.yaml",
  "biome.json",
].map((file) => join(repository, file));
const counted = (result: unknown) =>
  (result as { structuredContent?: { files?: number } }).structuredContent?.files === files.length;

const home = await mkdtemp(join(tmpdir(), "taskferry-quickstart-"));
const port = await freePort();
let server = await serve();
try {
  await everyGenerationSurvives();
  await questionsAreAsked();
  await plainClientsAreServed();
} finally {
  await server.kill();
  await rm(home, { recursive: true, force: true, maxRetries: 5 });
}
process.exitCode = verdict();

function serve() {
  return startServer(new URL("./server.js", import.meta.url), { TASKFERRY_HOME: home }, port);
}

async function everyGenerationSurvives(): Promise<void> {
  const draft = await DraftClient.connect(server.url);
  await draft.startTask("count_words", { files }, "my-own-id");
  tell("draft", "started count_words as task my-own-id");

  const client2025 = await legacyClient();
  let taskId = "";
  for await (const message of client2025.experimental.tasks.callToolStream(
    { name: "count_words", arguments: { files } },
    CallToolResultSchema,
    { task: { ttl: 600_000 } },
  )) {
    if (message.type === "error") throw message.error;
    if (message.type !== "taskCreated") continue;
    taskId = message.task.taskId;
    break;
  }
  tell("2025-11-25", `started count_words as task ${taskId}`);

  const modern = await modernSession(server.url, {});
  const execution = await modern.callTool("count_words", { files });
  if (execution.kind !== "task") throw new Error("The call was not answered with a task");
  let reference: SerializedTaskReference | undefined;
  await execution.handoff((handed) => {
    reference = handed;
  });
  tell("2026-07-28", `started count_words as task ${execution.handle.taskId}`);

  await Promise.all([draft.close(), client2025.close(), modern.close()]);
  await server.kill();
  tell("server", "all connections are closed, and the server is killed (SIGKILL) while three commands run");
  server = await serve();
  tell("server", "a new server has started on the same data");

  const draftAgain = await DraftClient.connect(server.url);
  const status = await draftAgain.getTask("my-own-id");
  tell("draft", `a new session reads: ${status.status}`);
  await until(
    "the draft task",
    () => draftAgain.getTask("my-own-id"),
    (task) => task.status === "completed",
  );
  check("draft", "fetched the result", counted(await draftAgain.getResult("my-own-id")));
  await draftAgain.close();

  const again2025 = await legacyClient();
  const task = await again2025.experimental.tasks.getTask(taskId);
  tell("2025-11-25", `a new session reads: ${task.status}`);
  check(
    "2025-11-25",
    "fetched the result",
    counted(await again2025.experimental.tasks.getTaskResult(taskId, CallToolResultSchema)),
  );
  await again2025.close();

  const modernAgain = await modernSession(server.url, {});
  const resumed = await modernAgain.resumeTask(reference as SerializedTaskReference);
  const { outcome } = await resumed.settle();
  check("2026-07-28", "fetched the result", counted(resultFromTaskOutcome(outcome)));
  await modernAgain.close();

  const runs = (await readdir(join(home, "runs"))).filter((entry) => !entry.startsWith("."));
  check("server", `each command ran once (${runs.length} runs for 3 tasks)`, runs.length === 3);
}

async function questionsAreAsked(): Promise<void> {
  const client = await legacyClient();
  client.setRequestHandler(ElicitRequestSchema, async (request) => {
    tell("2025-11-25", `is asked: ${request.params.message}`);
    return { action: "accept", content: { version: "2.0.0" } };
  });
  for await (const message of client.experimental.tasks.callToolStream(
    { name: "publish", arguments: { name: "ferry" } },
    CallToolResultSchema,
    { task: {} },
  )) {
    if (message.type === "taskStatus") tell("2025-11-25", `publish is ${message.task.status}`);
    if (message.type === "error") throw message.error;
    if (message.type === "result")
      check("2025-11-25", "published after its answer", textOf(message.result).includes("2.0.0"));
  }
  await client.close();

  const session = await modernSession(server.url, { version: "3.0.0" });
  const execution = await session.callTool("publish", { name: "ferry" });
  const { outcome } = await execution.settle({
    onEvent: (event) => {
      if (event.type === "task") tell("2026-07-28", `publish is ${event.task.status}`);
    },
  });
  check("2026-07-28", "published after its answer", textOf(resultFromTaskOutcome(outcome)).includes("3.0.0"));
  await session.close();
}

async function plainClientsAreServed(): Promise<void> {
  const client = await legacyClient({});
  const { tools } = await client.listTools();
  tell("plain", `sees ${tools.map((tool) => tool.name).join(", ")}`);
  const result = await client.callTool({ name: "count_words", arguments: { files } }, CallToolResultSchema, {
    onprogress: ({ progress, total }) => tell("plain", `progress ${progress}/${total ?? "?"}`),
  });
  check("plain", "got the result of one ordinary call", counted(result));

  const types = await client.callTool({ name: "check_types", arguments: {} });
  check("plain", "this repository type-checks", types.isError !== true);

  const asked = await client.callTool(
    { name: "publish", arguments: { name: "ferry" } },
    CallToolResultSchema,
    {
      timeout: 90_000,
    },
  );
  const { task } = asked.structuredContent as { task: { taskId: string } };
  tell("plain", "cannot be asked, so it got a handle with the question in words");
  await client.callTool({
    name: "task_answer",
    arguments: { taskId: task.taskId, content: { version: "4.0.0" } },
  });
  const end = await client.callTool({
    name: "task_status",
    arguments: { taskId: task.taskId, waitSeconds: 30 },
  });
  check("plain", "answered with a companion tool, and got the result", textOf(end).includes("4.0.0"));
  await client.close();
}

/** The v1 SDK, as most hosts use it. */
async function legacyClient(capabilities: object = { elicitation: { form: {} } }): Promise<Client> {
  const client = new Client({ name: "legacy-client", version: "0" }, { capabilities });
  await client.connect(new StreamableHTTPClientTransport(new URL(server.url)));
  return client;
}

function textOf(result: unknown): string {
  const { content } = result as { content: readonly { type: string; text?: string }[] };
  return content.map((block) => block.text ?? "").join("\n");
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer().once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address() as { port: number };
      probe.close(() => resolve(port));
    });
  });
}
