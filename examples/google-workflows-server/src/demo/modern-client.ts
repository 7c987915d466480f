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
import {
  type Answerer,
  elicited,
  IDEMPOTENCY_KEY,
  type RemoteTask,
  type TaskClient,
  type ToolResult,
} from "./task-client.js";

const PROTOCOL_VERSION = "2026-07-28";
const CLIENT_INFO = { name: "modern-client", version: "0" };
const CAPABILITIES = { elicitation: { form: {} }, extensions: { "io.modelcontextprotocol/tasks": {} } };

export class ModernClient implements TaskClient {
  readonly generation = PROTOCOL_VERSION;

  private constructor(private readonly session: TaskEnabledSession) {}

  static async connect(url: string, answerer: Answerer): Promise<ModernClient> {
    const client = new Client(CLIENT_INFO, {
      capabilities: CAPABILITIES,
      versionNegotiation: { mode: "auto" },
    });
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    const refuse = () => {
      throw new Error("not offered");
    };
    const session = createTaskSessionFromClient(client, {
      endpointId: "google-workflows-server",
      onInputRequest: createApplicationInputHandler({
        elicitation: ({ params }) => elicited(answerer(String(params["message"]))),
        sampling: refuse,
        roots: refuse,
      }),
      rawDispatch: (request) => post(url, request),
      v2RequestFraming: {
        protocolVersion: PROTOCOL_VERSION,
        clientInfo: CLIENT_INFO,
        clientCapabilities: CAPABILITIES,
      },
    });
    return new ModernClient(await session);
  }

  async start(name: string, args: object, idempotencyKey?: string): Promise<RemoteTask> {
    const metadata = idempotencyKey === undefined ? {} : { [IDEMPOTENCY_KEY]: idempotencyKey };
    return this.#task(await this.session.callTool(name, { ...args }, { metadata }));
  }

  async resume(handle: string): Promise<RemoteTask> {
    return this.#task(await this.session.resumeTask(JSON.parse(handle) as SerializedTaskReference));
  }

  close(): Promise<void> {
    return this.session.close();
  }

  #task(execution: ToolExecution<unknown>): RemoteTask {
    if (execution.kind !== "task") throw new Error("The call was not answered with a task");
    const { taskId } = execution.handle;
    return {
      handle: JSON.stringify(execution.serializeReference()),
      look: async () => {
        const { status, statusMessage } = await this.session.task(taskId).snapshot();
        return { status, ...(statusMessage !== undefined && { message: statusMessage }) };
      },
      end: async () => {
        const { outcome } = await execution.settle();
        return outcome.status === "completed"
          ? { status: outcome.status, result: outcome.result as ToolResult }
          : { status: outcome.status };
      },
      cancel: () => execution.cancel(),
    };
  }
}

type RawDispatch = NonNullable<Parameters<typeof createTaskSessionFromClient>[1]["rawDispatch"]>;

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
