/** 2025-11-25 and 2026-07-28: the official client with `@modelcontextprotocol/ext-tasks` on top. */
import {
  Client,
  ProtocolError,
  StreamableHTTPClientTransport,
  specTypeSchemas,
} from "@modelcontextprotocol/client";
import {
  createApplicationInputHandler,
  createTaskSessionFromClient,
  type SerializedTaskReference,
  type TaskEnabledSession,
  type ToolExecution,
  toolDeclarationFromMcpTool,
} from "@modelcontextprotocol/ext-tasks/client";
import { readHandle, writeHandle } from "./handle.js";
import { postFramed } from "./http.js";
import { CLIENT_INFO, IDEMPOTENCY_KEY } from "./meta.js";
import type {
  AskedQuestion,
  ConnectOptions,
  Ending,
  Generation,
  JsonObject,
  RemoteTask,
  StartOptions,
  TaskClient,
  ToolResult,
} from "./task-client.js";

const MODERN = "2026-07-28";
/** Scopes stored handles: they name a task, not a server. */
const ENDPOINT = "taskferry";

export class SdkTaskClient implements TaskClient {
  private constructor(
    readonly generation: Exclude<Generation, "draft">,
    private readonly client: Client,
    private readonly session: TaskEnabledSession,
  ) {}

  static async open(
    url: URL,
    wanted: "auto" | "2025-11-25" | "2026-07-28",
    options: ConnectOptions,
  ): Promise<SdkTaskClient> {
    const { answer, headers = {} } = options;
    const clientInfo = { ...(options.clientInfo ?? CLIENT_INFO) };
    const capabilities = {
      ...(answer !== undefined && { elicitation: { form: {}, url: {} } }),
      extensions: { "io.modelcontextprotocol/tasks": {} },
    };
    const client = new Client(clientInfo, {
      capabilities,
      versionNegotiation: {
        mode: wanted === "auto" ? "auto" : wanted === MODERN ? { pin: MODERN } : "legacy",
      },
    });
    await client.connect(
      new StreamableHTTPClientTransport(url, { requestInit: { headers: { ...headers } } }),
    );
    const modern = client.getProtocolEra() === "modern";
    const refuse = () => {
      throw new Error("This client has nothing of the kind");
    };
    const onInputRequest =
      answer &&
      createApplicationInputHandler({
        elicitation: async ({ params }) => ({ ...(await answer(params as unknown as AskedQuestion)) }),
        sampling: refuse,
        roots: refuse,
      });
    try {
      const session = createTaskSessionFromClient(client, {
        endpointId: ENDPOINT,
        ...(onInputRequest !== undefined && { onInputRequest }),
        // The SDK's codec does not know task results of this revision, so its requests go out by hand.
        ...(modern && {
          rawDispatch: (request, dispatch) =>
            postFramed(url, { ...headers, ...dispatch?.context?.headers }, request, dispatch?.signal),
          v2RequestFraming: { protocolVersion: MODERN, clientInfo, clientCapabilities: capabilities },
        }),
      } as Parameters<typeof createTaskSessionFromClient<void>>[1]);
      return new SdkTaskClient(modern ? MODERN : "2025-11-25", client, session);
    } catch (error) {
      await client.close();
      throw error;
    }
  }

  async start(tool: string, args: JsonObject = {}, options: StartOptions = {}): Promise<RemoteTask> {
    const { keepMs, idempotencyKey } = options;
    const { tools } = await this.client.listTools();
    const listed = tools.find(({ name }) => name === tool);
    const execution = await this.session.callTool(tool, args, {
      task: { preference: "prefer", ...(keepMs !== undefined && { retentionMs: keepMs }) },
      ...(listed !== undefined && { declaration: toolDeclarationFromMcpTool(listed) }),
      ...(idempotencyKey !== undefined && { metadata: { [IDEMPOTENCY_KEY]: idempotencyKey } }),
    });
    if (execution.kind !== "task")
      throw new Error(`The tool "${tool}" was answered without a task: it does not support them`);
    return this.task(execution);
  }

  async resume(handle: string): Promise<RemoteTask> {
    const reference = JSON.parse(readHandle(handle, this.generation)) as SerializedTaskReference;
    const execution = await this.session.resumeTask(reference);
    if (execution.kind !== "task") throw new Error("The handle names no task");
    return this.task(execution);
  }

  async close(): Promise<void> {
    await this.session.close();
    await this.client.close();
  }

  /** What the call would have answered (2025-11-25, `tasks/result`). @returns undefined if that is an error */
  private async answerOf(taskId: string, signal: AbortSignal | undefined): Promise<ToolResult | undefined> {
    try {
      return (await this.client.request(
        { method: "tasks/result", params: { taskId } },
        specTypeSchemas.CallToolResult,
        { ...(signal !== undefined && { signal }) },
      )) as ToolResult;
    } catch (error) {
      if (error instanceof ProtocolError) return undefined;
      throw error;
    }
  }

  private task(execution: Extract<ToolExecution<unknown>, { kind: "task" }>): RemoteTask {
    const { taskId } = execution.handle;
    return {
      taskId,
      handle: writeHandle(this.generation, JSON.stringify(execution.serializeReference())),
      status: async () => {
        const { status, statusMessage } = await this.session.task(taskId).snapshot();
        return { status, ...(statusMessage !== undefined && { message: statusMessage }) };
      },
      end: async ({ onStatus, signal } = {}): Promise<Ending> => {
        let told = "";
        const { outcome } = await execution.settle({
          ...(signal !== undefined && { signal }),
          onEvent: (event) => {
            if (event.type !== "task") return;
            const { status, statusMessage } = event.task;
            const now = JSON.stringify([status, statusMessage]);
            if (now === told) return;
            told = now;
            onStatus?.({ status, ...(statusMessage !== undefined && { message: statusMessage }) });
          },
        });
        if (outcome.status === "completed")
          return { status: "completed", result: outcome.result as ToolResult };
        if (outcome.status === "cancelled") return { status: "cancelled" };
        // The SDK does not ask on where a task has failed, and in 2025-11-25 that is every `isError`.
        const result = this.generation === MODERN ? undefined : await this.answerOf(taskId, signal);
        if (result !== undefined) return { status: "completed", result };
        return { status: "failed", error: outcome.error.message };
      },
      cancel: () => execution.cancel(),
    };
  }
}
