/**
 * One server process and all the clients there are, at the same time: the v1 SDK with its experimental tasks, ext-tasks
 * on the v2 SDK in both eras, a client of the draft, and plain ones. Over HTTP, and over stdio.
 */
import { join } from "node:path";
import { StreamableHTTPClientTransport as ModernHttp, type Transport } from "@modelcontextprotocol/client";
import { resultFromTaskOutcome, toolDeclarationFromMcpTool } from "@modelcontextprotocol/ext-tasks/client";
import { StdioClientTransport as V1Stdio } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as V1Http } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  CallToolResultSchema,
  CreateTaskResultSchema,
  ElicitRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { describe, expect, test } from "vitest";
import { extTasksSession, rawClient, v1Client } from "../support/clients.js";
import { tempDir } from "../support/engines.js";
import type { Json } from "../support/raw-client.js";
import { httpProcess, open, SERVER_MAIN, stdioServer } from "../support/server-process.js";

const TASK = "modelcontextprotocol.io/task";
const RELATED = "modelcontextprotocol.io/related-task";
const textOf = (result: Json) => result.content.map((block: Json) => block.text ?? "").join("\n");

interface Server {
  readonly home: string;
  modern(): Transport;
  v1(): Json;
}

/** Over HTTP all clients share one process; over stdio each has its own, on the same data. */
async function serverOver(kind: "HTTP" | "stdio"): Promise<Server> {
  const home = await tempDir();
  if (kind === "HTTP") {
    const { url } = await httpProcess(home, { serve: { inlineWaitMs: 400 } });
    return { home, modern: () => new ModernHttp(new URL(url)), v1: () => new V1Http(new URL(url)) };
  }
  const options = { serve: { inlineWaitMs: 400 } };
  return {
    home,
    modern: () => stdioServer(home, options),
    v1: () =>
      new V1Stdio({
        command: process.execPath,
        args: [SERVER_MAIN, "stdio", home, JSON.stringify(options)],
        stderr: "ignore",
      }),
  };
}

/** The v1 SDK: a stream of statuses and a result, then each task method by itself. */
async function asV1Sdk({ v1, home }: Server): Promise<string[]> {
  const { client, shapes } = await v1Client(v1());
  await client.listTools();
  const gate = join(home, "gate-v1");
  const seen: string[] = [];
  let taskId = "";
  const stream = client.experimental.tasks.callToolStream(
    { name: "gated", arguments: { gate } },
    CallToolResultSchema,
    { task: { ttl: 60_000 } },
  );
  for await (const message of stream) {
    seen.push(message.type);
    if (message.type === "error") throw message.error;
    if (message.type === "taskCreated") {
      taskId = message.task.taskId;
      expect((await client.experimental.tasks.getTask(taskId)).status).toBe("working");
      const { tasks } = await client.experimental.tasks.listTasks();
      expect(tasks.map((task) => task.taskId)).toContain(taskId);
      open(gate);
    }
    if (message.type === "result") expect(message.result.structuredContent).toEqual({ opened: "yes" });
  }
  expect(seen.at(0)).toBe("taskCreated");
  expect(seen.at(-1)).toBe("result");
  const again = await client.experimental.tasks.getTaskResult(taskId, CallToolResultSchema);
  expect(again.structuredContent).toEqual({ opened: "yes" });

  const created: Json = await client.request(
    { method: "tools/call", params: { name: "waits", arguments: { gate: join(home, "never") }, task: {} } },
    CreateTaskResultSchema,
  );
  const cancelled = await client.experimental.tasks.cancelTask(created.task.taskId);
  expect(cancelled.status).toBe("cancelled");
  await expect(client.experimental.tasks.cancelTask(created.task.taskId)).rejects.toMatchObject({
    code: -32602,
  });
  expect(shapes.checked).toEqual(
    expect.arrayContaining([
      "initialize",
      "tools/list",
      "tools/call",
      "tasks/get",
      "tasks/result",
      "tasks/list",
      "tasks/cancel",
    ]),
  );
  return shapes.misfits;
}

/** `ext-tasks` on the v2 SDK: starts, reads along, is asked, settles, cancels. */
async function asExtTasks({ modern, home }: Server, era: "legacy" | "modern"): Promise<string[]> {
  const { session, client, shapes } = await extTasksSession(modern(), era, { name: `Ada of ${era}` });
  expect(client.getProtocolEra()).toBe(era);
  const { tools } = await client.listTools();
  expect(tools.map((tool) => tool.name)).toEqual(
    expect.arrayContaining(["ordinary", "gated", "task_status"]),
  );
  const call = (name: string, args: Json) => {
    const tool = tools.find((listed) => listed.name === name);
    return session.callTool(name, args, {
      declaration: toolDeclarationFromMcpTool(tool as Json),
      ...(era === "legacy" && { task: { preference: "prefer" } }),
    });
  };

  const gate = join(home, `gate-${era}`);
  const gated = await call("gated", { gate });
  expect(gated.kind).toBe("task");
  open(gate);
  const { outcome } = await gated.settle();
  expect((resultFromTaskOutcome(outcome) as Json).structuredContent).toEqual({ opened: "yes" });

  // In the 2025 era this client polls and blocks on nothing: it is asked on the stream of its session.
  const asked = await call("greets", {});
  const greeted = await asked.settle();
  expect(textOf(resultFromTaskOutcome(greeted.outcome))).toContain(`Hello, Ada of ${era}`);

  const stopped = await call("waits", { gate: join(home, "never") });
  await stopped.cancel();
  expect((await stopped.result()).status).toBe("cancelled");
  await session.close();
  expect(shapes.checked).toEqual(expect.arrayContaining(["tools/call", "tasks/get", "tasks/cancel"]));
  return shapes.misfits;
}

/** A client of the draft: names its task, hears that it is there, polls, fetches, deletes. */
async function asDraft({ modern, home }: Server): Promise<string[]> {
  const { client, shapes } = await rawClient(modern());
  const gate = join(home, "gate-draft");
  const taskId = "the client's own id";
  const meta = { [RELATED]: { taskId } };
  const call = client.send("tools/call", {
    name: "gated",
    arguments: { gate },
    _meta: { [TASK]: { taskId, keepAlive: 5_000 } },
  });
  const created = await client.until(() =>
    client.notifications.find((note) => note.method === "notifications/tasks/created"),
  );
  expect(created.params).toEqual({ _meta: meta });
  const get = await client.request("tasks/get", { taskId, _meta: meta });
  expect(get.result).toMatchObject({ taskId, keepAlive: 5_000, _meta: meta });
  const early = await client.request("tasks/result", { taskId, _meta: meta });
  expect(early.error?.code).toBe(-32602);
  open(gate);
  const answer = await call.reply;
  expect(answer.result).toMatchObject({ structuredContent: { opened: "yes" }, _meta: meta });
  const result = await client.request("tasks/result", { taskId, _meta: meta });
  expect(result.result).toEqual(answer.result);
  const list = await client.request("tasks/list", { _meta: meta });
  expect(list.result.tasks.map((task: Json) => task.taskId)).toContain(taskId);
  const gone = await client.request("tasks/delete", { taskId, _meta: meta });
  expect(gone.result).toEqual({ _meta: meta });
  return shapes.misfits;
}

/** A client that knows no tasks, with a progress token and without. */
async function asPlain({ v1, home }: Server): Promise<string[]> {
  const { client, shapes } = await v1Client(v1(), {});
  const echoed = await client.callTool({ name: "echo", arguments: { text: "plain" } });
  expect(echoed.structuredContent).toEqual({ text: "plain" });
  const ordinary = await client.callTool({ name: "ordinary", arguments: { name: "Bob" } });
  expect(textOf(ordinary)).toBe("Hello, Bob");
  const gate = join(home, "gate-plain");
  const told: number[] = [];
  const handle: Json = await client.callTool({ name: "gated", arguments: { gate } }, undefined, {
    onprogress: ({ progress }) => told.push(progress),
  });
  expect(told.length).toBeGreaterThan(0);
  expect(handle.structuredContent.task).toMatchObject({ status: "working" });
  open(gate);
  const { taskId } = handle.structuredContent.task;
  const end = await client.callTool({ name: "task_status", arguments: { taskId, waitSeconds: 20 } });
  expect(end.structuredContent).toEqual({ opened: "yes" });
  return shapes.misfits;
}

describe.each(["HTTP", "stdio"] as const)("over %s", (kind) => {
  test("clients of every generation are served at the same time, in shapes that fit", async () => {
    const server = await serverOver(kind);
    const misfits = await Promise.all([
      asV1Sdk(server),
      asExtTasks(server, "legacy"),
      asExtTasks(server, "modern"),
      asDraft(server),
      asPlain(server),
    ]);
    expect(misfits.flat()).toEqual([]);
  }, 30_000);

  test("the v1 SDK's validator takes result, handle and failure of a tool with an output schema", async () => {
    const { home, v1 } = await serverOver(kind);
    const { client } = await v1Client(v1(), { elicitation: { form: {} } });
    client.setRequestHandler(ElicitRequestSchema, () => ({ action: "decline" }));
    // Only what has been listed is validated.
    const { tools } = await client.listTools();
    expect(tools.find((tool) => tool.name === "gated")?.outputSchema).toBeDefined();
    expect(tools.find((tool) => tool.name === "fails")?.outputSchema).toBeDefined();

    const result = await client.callTool({ name: "echo", arguments: { text: "valid" } });
    expect(result.structuredContent).toEqual({ text: "valid" });
    const handle: Json = await client.callTool({ name: "gated", arguments: { gate: join(home, "never") } });
    expect(handle.structuredContent.task.taskId).toEqual(expect.any(String));
    const failure: Json = await client.callTool({ name: "fails", arguments: {} });
    expect(failure).toMatchObject({ isError: true, structuredContent: { error: { code: "TypeError" } } });
  }, 30_000);
});
