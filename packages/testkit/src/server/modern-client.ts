/** The official 2026-07-28 requester: the v2 SDK client with @modelcontextprotocol/ext-tasks on top. */
import { randomUUID } from "node:crypto";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import {
  createApplicationInputHandler,
  createTaskSessionFromClient,
  type SerializedTaskReference,
  type TaskEnabledSession,
  type ToolExecution,
} from "@modelcontextprotocol/ext-tasks/client";
import type { JsonObject } from "@taskferry/core";
import { type Asked, type Ending, type RemoteTask, type TaskClient, TOOL } from "./task-client.js";

const PROTOCOL_VERSION = "2026-07-28";
const CLIENT_INFO = { name: "kit-2026-client", version: "0" };
const CAPABILITIES = {
  elicitation: { form: {}, url: {} },
  sampling: {},
  extensions: { "io.modelcontextprotocol/tasks": {} },
};

type RawDispatch = NonNullable<Parameters<typeof createTaskSessionFromClient>[1]["rawDispatch"]>;

export class ModernClient implements TaskClient {
  private constructor(private readonly session: TaskEnabledSession) {}

  static async connect(url: string, asked: Asked): Promise<ModernClient> {
    const client = new Client(CLIENT_INFO, {
      capabilities: CAPABILITIES,
      versionNegotiation: { mode: "auto" },
    });
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    type Handlers = Parameters<typeof createApplicationInputHandler>[0];
    const onInputRequest = createApplicationInputHandler<void>({
      elicitation: (request: unknown) => asked.elicit(paramsOf(request)),
      sampling: (request: unknown) => asked.sample(paramsOf(request)),
      roots: () => {
        throw new Error("The kit has no roots");
      },
    } as unknown as Handlers);
    const session = createTaskSessionFromClient<void>(client, {
      endpointId: "taskferry-kit",
      onInputRequest,
      rawDispatch: (request) => post(url, request),
      v2RequestFraming: {
        protocolVersion: PROTOCOL_VERSION,
        clientInfo: CLIENT_INFO,
        clientCapabilities: CAPABILITIES,
      },
    });
    return new ModernClient(await session);
  }

  async start(): Promise<RemoteTask> {
    return this.#task(await this.session.callTool(TOOL, {}));
  }

  async resume(handle: string): Promise<RemoteTask> {
    return this.#task(await this.session.resumeTask(JSON.parse(handle) as SerializedTaskReference));
  }

  close(): Promise<void> {
    return this.session.close();
  }

  #task(execution: ToolExecution<unknown>): RemoteTask {
    if (execution.kind !== "task") throw new Error("The call was not answered with a task");
    return {
      handle: JSON.stringify(execution.serializeReference()),
      status: async () => (await this.session.task(execution.handle.taskId).snapshot()).status,
      end: async (): Promise<Ending> => {
        const { outcome } = await execution.settle();
        if (outcome.status === "completed") {
          return { status: outcome.status, result: outcome.result as JsonObject };
        }
        return {
          status: outcome.status,
          ...(outcome.status === "failed" && { error: outcome.error.message }),
        };
      },
      cancel: () => execution.cancel(),
    };
  }
}

function paramsOf(request: unknown): unknown {
  return (request as { params?: unknown }).params ?? request;
}

/** Sends one framed request: the SDK's own codec does not know task results. */
async function post(url: string, request: unknown): ReturnType<RawDispatch> {
  const framed = request as { method: string; params: { name?: string; taskId?: string } };
  const target = framed.params.name ?? framed.params.taskId;
  const response = await fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": PROTOCOL_VERSION,
      "mcp-method": framed.method,
      ...(target !== undefined && { "mcp-name": target }),
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: randomUUID(), ...framed }),
  });
  const reply = JSON.parse(lastMessage(await response.text()));
  return "error" in reply ? { kind: "error", error: reply.error } : { kind: "result", result: reply.result };
}

/** The body itself, or the last message of an event stream. */
function lastMessage(body: string): string {
  if (body.startsWith("{")) return body;
  const messages = body.split("\n").filter((line) => line.startsWith("data:"));
  return messages.at(-1)?.slice("data:".length) ?? "{}";
}
