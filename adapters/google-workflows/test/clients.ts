/** Official clients of the two published generations: what the tests of the whole server look through. */
import { Client as ModernSdkClient, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import {
  createApplicationInputHandler,
  createTaskSessionFromClient,
  type ToolExecution,
} from "@modelcontextprotocol/ext-tasks/client";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as LegacyTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { CallToolResultSchema, ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const MODERN = "2026-07-28";
const TOOL = "run";

/** How a task ended: as a result, an error in words, or cancelled. */
export interface Ending {
  readonly status: string;
  readonly isError?: boolean;
  readonly text?: string;
  readonly value?: unknown;
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

type Content = Record<string, string> | undefined;

/** Answers a question; `undefined` declines. */
export type Answerer = (message: string) => Content | Promise<Content>;

/** Somebody who is asked and never answers. */
export const neverAnswers: Answerer = () => new Promise(() => {});

const notAsked: Answerer = (message) => {
  throw new Error(`asked: ${message}`);
};

async function connect2025(url: string, answerer: Answerer = notAsked): Promise<Session> {
  const client = new Client(
    { name: "client-2025", version: "0" },
    { capabilities: { elicitation: { form: {} } } },
  );
  client.setRequestHandler(ElicitRequestSchema, async ({ params }) =>
    elicited(await answerer(params.message)),
  );
  await client.connect(new LegacyTransport(new URL(url)));
  const { tasks } = client.experimental;
  return {
    async start(args = {}) {
      const params = { name: TOOL, arguments: { ...args } };
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

async function connect2026(url: string, answerer: Answerer = notAsked): Promise<Session> {
  const clientInfo = { name: "client-2026", version: "0" };
  const clientCapabilities = {
    elicitation: { form: {} },
    extensions: { "io.modelcontextprotocol/tasks": {} },
  };
  const client = new ModernSdkClient(clientInfo, {
    capabilities: clientCapabilities,
    versionNegotiation: { mode: "auto" },
  });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  const refuse = () => {
    throw new Error("not offered");
  };
  const session = await createTaskSessionFromClient(client, {
    endpointId: "google-workflows",
    onInputRequest: createApplicationInputHandler({
      elicitation: async ({ params }) => elicited(await answerer(String(params["message"]))),
      sampling: refuse,
      roots: refuse,
    }),
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
      const execution = asTask(await session.callTool(TOOL, { ...args }));
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

/** By the generation that they speak. */
export const CLIENTS = { "2025-11-25": connect2025, "2026-07-28": connect2026 } as const;
export type ClientGeneration = keyof typeof CLIENTS;

type TaskExecution = Extract<ToolExecution<unknown>, { readonly kind: "task" }>;

function asTask(execution: ToolExecution<unknown>): TaskExecution {
  if (execution.kind !== "task") throw new Error("The call was not answered with a task");
  return execution;
}

function elicited(content: Content) {
  return content === undefined ? { action: "decline" as const } : { action: "accept" as const, content };
}

interface ToolResult {
  readonly content: readonly { readonly type: string; readonly text?: string }[];
  readonly structuredContent?: unknown;
  readonly isError?: boolean;
}

function told(result: object): Omit<Ending, "status"> {
  const { content, structuredContent, isError = false } = result as ToolResult;
  return { isError, text: content.map(({ text = "" }) => text).join("\n"), value: structuredContent };
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
