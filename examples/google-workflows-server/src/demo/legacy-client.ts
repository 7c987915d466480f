/** The v1 SDK, as most hosts use it: its experimental tasks are those of 2025-11-25. */
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { CallToolResultSchema, ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import {
  type Answerer,
  elicited,
  IDEMPOTENCY_KEY,
  type RemoteTask,
  type TaskClient,
  type ToolResult,
} from "./task-client.js";
import { until } from "./timeline.js";

/** Connects; without an answerer, as a client that cannot be asked. */
export async function connectLegacy(url: string, answerer?: Answerer): Promise<Client> {
  const capabilities = answerer === undefined ? {} : { elicitation: { form: {} } };
  const client = new Client({ name: "legacy-client", version: "0" }, { capabilities });
  if (answerer !== undefined) {
    client.setRequestHandler(ElicitRequestSchema, async ({ params }) => elicited(answerer(params.message)));
  }
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  return client;
}

export class LegacyClient implements TaskClient {
  readonly generation = "2025-11-25";

  private constructor(private readonly client: Client) {}

  static async connect(url: string, answerer: Answerer): Promise<LegacyClient> {
    return new LegacyClient(await connectLegacy(url, answerer));
  }

  async start(name: string, args: object, idempotencyKey?: string): Promise<RemoteTask> {
    const _meta = idempotencyKey === undefined ? {} : { [IDEMPOTENCY_KEY]: idempotencyKey };
    const params = { name, arguments: { ...args }, _meta };
    const stream = this.client.experimental.tasks.callToolStream(params, CallToolResultSchema, {
      task: { ttl: 600_000 },
    });
    for await (const message of stream) {
      if (message.type === "error") throw message.error;
      if (message.type === "taskCreated") return this.resume(message.task.taskId);
    }
    throw new Error("The call was not answered with a task");
  }

  async resume(taskId: string): Promise<RemoteTask> {
    const { tasks } = this.client.experimental;
    const look = async () => {
      const { status, statusMessage } = await tasks.getTask(taskId);
      return { status, ...(statusMessage !== undefined && { message: statusMessage }) };
    };
    return {
      handle: taskId,
      look,
      end: async () => {
        // Blocks until the end; the server asks its questions meanwhile. A cancelled task has no result.
        const result = await tasks.getTaskResult(taskId, CallToolResultSchema).catch(async (error) => {
          const { status } = await look();
          if (status === "cancelled") return undefined;
          throw error;
        });
        const { status } = await until(`the end of ${taskId}`, look, (task) => task.status !== "working");
        return result === undefined ? { status } : { status, result: result as ToolResult };
      },
      cancel: async () => void (await tasks.cancelTask(taskId)),
    };
  }

  close(): Promise<void> {
    return this.client.close();
  }
}
