/** Official clients of the two published generations: what the tests of the whole server look through. */
import { Client as ModernSdkClient, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { createTaskSessionFromClient, type ToolExecution } from "@modelcontextprotocol/ext-tasks/client";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as LegacyTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { CallToolResultSchema } from "@modelcontextprotocol/sdk/types.js";
import type { RunResult } from "../src/index.js";

const MODERN = "2026-07-28";

/** How a task ended: as a result, an error in words, or cancelled. */
export interface Ending {
  readonly status: string;
  readonly isError?: boolean;
  readonly text?: string;
  readonly run?: RunResult;
  readonly error?: string;
}

/** One session. Handles are good for other sessions of its generation, too. */
export interface Session {
  start(args?: object): Promise<string>;
  look(handle: string): Promise<{ readonly status: string; readonly statusMessage?: string | undefined }>;
  end(handle: string): Promise<Ending>;
  cancel(handle: string): Promise<void>;
  close(): Promise<void>;
}

export async function connect2025(url: string): Promise<Session> {
  const client = new Client({ name: "client-2025", version: "0" });
  await client.connect(new LegacyTransport(new URL(url)));
  const { tasks } = client.experimental;
  return {
    async start(args = {}) {
      const params = { name: "run_ci", arguments: { ...args } };
      for await (const message of tasks.callToolStream(params, CallToolResultSchema, { task: {} })) {
        if (message.type === "error") throw message.error;
        if (message.type === "taskCreated") return message.task.taskId;
      }
      throw new Error("The call was not answered with a task");
    },
    look: (taskId) => tasks.getTask(taskId),
    async end(taskId) {
      const answer = await tasks.getTaskResult(taskId, CallToolResultSchema).then(told, (error: Error) => ({
        error: error.message,
      }));
      return { status: (await tasks.getTask(taskId)).status, ...answer };
    },
    cancel: async (taskId) => void (await tasks.cancelTask(taskId)),
    close: () => client.close(),
  };
}

export async function connect2026(url: string): Promise<Session> {
  const clientInfo = { name: "client-2026", version: "0" };
  const clientCapabilities = { extensions: { "io.modelcontextprotocol/tasks": {} } };
  const client = new ModernSdkClient(clientInfo, {
    capabilities: clientCapabilities,
    versionNegotiation: { mode: "auto" },
  });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  const session = await createTaskSessionFromClient(client, {
    endpointId: "github-actions",
    rawDispatch: (request) => post(url, request),
    v2RequestFraming: { protocolVersion: MODERN, clientInfo, clientCapabilities },
  });
  // A session has one owner of each task; another session takes it over with the handle.
  const owned = new Map<string, Promise<TaskExecution>>();
  const own = (handle: string): Promise<TaskExecution> => {
    const execution = owned.get(handle) ?? session.resumeTask(JSON.parse(handle)).then(asTask);
    owned.set(handle, execution);
    return execution;
  };
  return {
    async start(args = {}) {
      const execution = asTask(await session.callTool("run_ci", { ...args }));
      const handle = JSON.stringify(execution.serializeReference());
      owned.set(handle, Promise.resolve(execution));
      return handle;
    },
    look: async (handle) => session.task((await own(handle)).handle.taskId).snapshot(),
    async end(handle) {
      const { outcome } = await (await own(handle)).settle();
      if (outcome.status === "completed") return { status: outcome.status, ...told(outcome.result as never) };
      return { status: outcome.status, ...("error" in outcome && { error: outcome.error.message }) };
    },
    cancel: async (handle) => (await own(handle)).cancel(),
    close: () => session.close(),
  };
}

type TaskExecution = Extract<ToolExecution<unknown>, { readonly kind: "task" }>;

function asTask(execution: ToolExecution<unknown>): TaskExecution {
  if (execution.kind !== "task") throw new Error("The call was not answered with a task");
  return execution;
}

interface ToolResult {
  readonly content: readonly { readonly type: string; readonly text?: string }[];
  readonly structuredContent?: Readonly<Record<string, unknown>>;
  readonly isError?: boolean;
}

function told(result: object): Omit<Ending, "status"> {
  const { content, structuredContent, isError = false } = result as ToolResult;
  const run = isError ? structuredContent?.["detail"] : structuredContent;
  return { isError, text: content.map(({ text = "" }) => text).join("\n"), run: run as RunResult };
}

/** Sends one framed request: the SDK's own codec does not know task results. */
async function post(
  url: string,
  request: unknown,
): ReturnType<NonNullable<Parameters<typeof createTaskSessionFromClient>[1]["rawDispatch"]>> {
  const framed = request as { method: string; params: { name?: string; taskId?: string } };
  const target = framed.params.name ?? framed.params.taskId;
  const response = await fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": MODERN,
      "mcp-method": framed.method,
      ...(target !== undefined && { "mcp-name": target }),
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: crypto.randomUUID(), ...framed }),
  });
  const body = await response.text();
  const events = body.split("\n").filter((line) => line.startsWith("data:"));
  const reply = JSON.parse(body.startsWith("{") ? body : (events.at(-1)?.slice("data:".length) ?? "{}"));
  return "error" in reply ? { kind: "error", error: reply.error } : { kind: "result", result: reply.result };
}
