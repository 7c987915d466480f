/** The v1 SDK's experimental tasks: 2025-11-25, as most hosts speak it. */
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  CallToolResultSchema,
  CreateMessageRequestSchema,
  type CreateMessageResult,
  ElicitRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";
import type { JsonObject } from "@taskferry/core";
import { type Asked, type Ending, type RemoteTask, type TaskClient, TOOL } from "./task-client.js";

export class LegacyClient implements TaskClient {
  private constructor(private readonly client: Client) {}

  static async connect(url: string, asked: Asked): Promise<LegacyClient> {
    const capabilities = { elicitation: { form: {}, url: {} }, sampling: {} };
    const client = new Client({ name: "kit-2025-client", version: "0" }, { capabilities });
    client.setRequestHandler(ElicitRequestSchema, ({ params }) => asked.elicit(params));
    client.setRequestHandler(
      CreateMessageRequestSchema,
      ({ params }) => asked.sample(params) as unknown as CreateMessageResult,
    );
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    return new LegacyClient(client);
  }

  async start(): Promise<RemoteTask> {
    const stream = this.client.experimental.tasks.callToolStream(
      { name: TOOL, arguments: {} },
      CallToolResultSchema,
      { task: { ttl: 600_000 } },
    );
    for await (const message of stream) {
      if (message.type === "error") throw message.error;
      if (message.type === "taskCreated") return this.#task(message.task.taskId);
    }
    throw new Error("The call was not answered with a task");
  }

  async resume(handle: string): Promise<RemoteTask> {
    return this.#task(handle);
  }

  close(): Promise<void> {
    return this.client.close();
  }

  #task(taskId: string): RemoteTask {
    const { tasks } = this.client.experimental;
    const status = async () => (await tasks.getTask(taskId)).status;
    return {
      handle: taskId,
      status,
      // `tasks/result` blocks until the end, and is where the server asks its questions.
      end: async (): Promise<Ending> => {
        const outcome = await tasks.getTaskResult(taskId, CallToolResultSchema).then(
          (result) => ({ result: result as unknown as JsonObject }),
          (error: unknown) => ({ error: (error as Error).message }),
        );
        return { status: await status(), ...outcome };
      },
      cancel: async () => void (await tasks.cancelTask(taskId)),
    };
  }
}
