/** Puts a task engine behind an `McpServer`, beside its ordinary tools, resources and prompts. */
import {
  type McpRequestContext,
  type McpServer,
  type ServerContext,
  UriTemplate,
} from "@modelcontextprotocol/server";
import { z } from "zod";
import { WorkflowError } from "../contract/errors.js";
import { isJsonObject, type Json, type JsonObject } from "../contract/json.js";
import type { Owner } from "../contract/owner.js";
import { isTerminal } from "../contract/task.js";
import type { Workflow } from "../contract/workflow.js";
import type { TaskEngine, TaskView } from "../engine/engine.js";
import { tracedRequest } from "../observe/observe.js";
import { RELATED_TASK, TASKS_EXTENSION, toJsonRpcError } from "../wire/codec.js";
import { statusNotification } from "../wire/v2025-11-25.js";
import { askOnSession } from "./ask.js";
import { callWorkflow, noTaskSupport, type WorkflowCall } from "./call.js";
import { type Companion, callCompanion, companionsBeside } from "./companions.js";
import { Connection, type OwnerResolver } from "./connection.js";
import { companionTool, isTemplate, promptOf, resourceOf, toolOf } from "./listing.js";
import { answerMethod, LEGACY_METHODS, MODERN_METHODS } from "./methods.js";
import { ownerResolver } from "./owner.js";
import { type RawHandler, type RawRequest, rawHandlers, type SdkServer } from "./sdk-internals.js";

export interface AttachOptions {
  /** What a server factory was called with (`createMcpHandler`, `serveStdio`): the era, the caller, the request. */
  readonly context?: McpRequestContext;
  /** Whose tasks a request may see. @default principals of `authInfo`, else the person at this machine */
  readonly owner?: OwnerResolver;
  /** Offer `task_status`, `task_answer`, `task_cancel` and `task_list` to clients that know no Tasks. @default true */
  readonly companions?: boolean;
  /** How long a call of a client without Tasks waits for the result, in milliseconds. @default 45000 */
  readonly inlineWaitMs?: number;
  /** Aborted when the server is about to close: calls that wait are answered at once, with what there is to tell. */
  readonly closing?: AbortSignal;
}

/**
 * Serves an engine's workflows on an MCP server, in all generations of MCP Tasks that its connection can speak. Call it
 * once per server instance, before connecting; ordinary tools may be registered before or after.
 * @returns what is known of the client, once it is connected
 * @throws WorkflowError `configuration` if a workflow and an ordinary tool share a name, or the server is connected
 *
 * @example
 * const server = new McpServer({ name: "ci", version: "1.0.0" });
 * server.registerTool("ping", {}, async () => ({ content: [{ type: "text", text: "pong" }] }));
 * attach(server, engine);
 */
export function attach(mcpServer: McpServer, engine: TaskEngine, options: AttachOptions = {}): Connection {
  const { server } = mcpServer;
  if (server.transport !== undefined) {
    throw new WorkflowError("configuration", "attach must be called before the server is connected");
  }
  const resolveOwner = options.owner ?? ownerResolver({ strangers: "local" });
  const connection = new Connection(server, options.context, resolveOwner, options.closing);
  const binding = new Binding(mcpServer, connection, engine, options);
  binding.declareCapabilities();

  const connect = server.connect.bind(server);
  server.connect = async (transport) => {
    // Only now are the ordinary tools complete, and their handlers there to be wrapped.
    binding.install();
    const before = transport.onmessage;
    transport.onmessage = (message, extra) => {
      before?.(message, extra);
      binding.observe(message, extra?.authInfo, transport.sessionId);
    };
    const closed = server.onclose;
    server.onclose = () => {
      connection.closed.abort();
      closed?.();
    };
    return connect(transport);
  };
  return connection;
}

const ANY_PARAMS = z.looseObject({});

class Binding {
  private readonly handlers: Map<string, RawHandler>;
  private readonly byMethod: Readonly<Record<Workflow["method"], readonly Workflow[]>>;
  private readonly inlineWaitMs: number;
  private readonly companions: readonly Companion[];

  constructor(
    private readonly mcpServer: McpServer,
    private readonly connection: Connection,
    private readonly engine: TaskEngine,
    options: AttachOptions,
  ) {
    this.handlers = rawHandlers(connection.server);
    this.inlineWaitMs = options.inlineWaitMs ?? 45_000;
    this.companions = companionsBeside(engine, options);
    const workflows = [...engine.workflows.values()];
    const of = (method: Workflow["method"]) => workflows.filter((workflow) => workflow.method === method);
    this.byMethod = {
      "tools/call": of("tools/call"),
      "prompts/get": of("prompts/get"),
      "resources/read": of("resources/read"),
    };
  }

  private get server(): SdkServer {
    return this.connection.server;
  }

  /** Advertises tasks in the words of the connection's era. */
  declareCapabilities(): void {
    const { "prompts/get": prompts, "resources/read": resources } = this.byMethod;
    const extensions = this.connection.isModern ? { extensions: { [TASKS_EXTENSION]: {} } } : {};
    const requests = {
      tools: { call: {} },
      ...(resources.length > 0 && { resources: { read: {} } }),
      ...(prompts.length > 0 && { prompts: { get: {} } }),
    };
    const tasks = this.connection.isModern
      ? {}
      : { tasks: { ...(this.mayList() && { list: {} }), cancel: {}, requests } };
    this.server.registerCapabilities({
      // As the SDK declares it with the first ordinary tool. Without it, the SDK's entry closes a listen for tasks at once.
      tools: { listChanged: true },
      ...(resources.length > 0 && { resources: {} }),
      ...(prompts.length > 0 && { prompts: {} }),
      ...tasks,
      ...extensions,
    });
  }

  /** `tasks/list` is offered only where the owner can be told. */
  private mayList(): boolean {
    return this.connection.ownerOf(undefined).kind !== "anonymous";
  }

  install(): void {
    const { "tools/call": tools, "prompts/get": prompts, "resources/read": resources } = this.byMethod;
    this.refuseSharedNames(tools);
    const modern = this.connection.isModern;
    this.list("tools/list", "tools", [
      ...tools.map((tool) => toolOf(tool, modern)),
      ...this.companions.map(companionTool),
    ]);
    this.wrap("tools/call", (rest, request, ctx) => this.callTool(rest, request, ctx));
    if (prompts.length > 0) {
      this.list("prompts/list", "prompts", prompts.map(promptOf));
      this.wrap("prompts/get", (rest, request, ctx) => this.getPrompt(rest, request, ctx));
    }
    if (resources.length > 0) {
      const entries = resources.map(resourceOf);
      const isFamily = (entry: JsonObject) => "uriTemplate" in entry;
      this.list(
        "resources/list",
        "resources",
        entries.filter((entry) => !isFamily(entry)),
      );
      this.list("resources/templates/list", "resourceTemplates", entries.filter(isFamily));
      this.wrap("resources/read", (rest, request, ctx) => this.readResource(rest, request, ctx));
    }
    const methods = this.connection.isModern ? MODERN_METHODS : LEGACY_METHODS;
    for (const [name, handler] of Object.entries(methods)) {
      if (name === "tasks/list" && !this.mayList()) continue;
      const answer = this.guarded(name, (request, ctx) =>
        answerMethod(handler, this.connection, request, ctx, this.engine),
      );
      // With a schema of our own the SDK lets through a method that its registry of the era does not have.
      this.server.setRequestHandler(name, { params: ANY_PARAMS }, (params, ctx) =>
        answer({ method: name, params: params as JsonObject }, ctx),
      );
    }
  }

  /** Watches for the draft's cancel: the SDK's abort signal cannot tell it from a closed stream (SEP-1686, 4.8). */
  observe(
    message: unknown,
    authInfo: Parameters<Connection["ownerOf"]>[0],
    sessionId: string | undefined,
  ): void {
    if (this.connection.isModern || !isJsonObject(message) || message.method !== "notifications/cancelled")
      return;
    const params = isJsonObject(message.params) ? message.params : {};
    const meta = isJsonObject(params._meta) ? params._meta : {};
    const related = meta[RELATED_TASK.draft];
    const owner = this.connection.ownerOf(authInfo, sessionId);
    void this.cancelDraft(owner, related, params.requestId).catch((error: unknown) => {
      this.engine.log.debug({ error: (error as Error).name }, "notifications/cancelled named no task");
    });
  }

  private async cancelDraft(
    owner: Owner,
    related: Json | undefined,
    requestId: Json | undefined,
  ): Promise<void> {
    const named = isJsonObject(related) && typeof related.taskId === "string" ? related.taskId : undefined;
    this.connection.callCancelled(JSON.stringify(requestId), named);
    if (named !== undefined) {
      const { task } = await this.engine.peek(owner, named);
      if (task.generation === "draft") await this.engine.cancel(owner, task.taskId, "now");
    } else if (requestId !== undefined) {
      await this.engine.cancelByRequest(owner, this.connection.id, JSON.stringify(requestId));
    }
  }

  private refuseSharedNames(tools: readonly Workflow[]): void {
    for (const { name } of [...tools, ...this.companions]) {
      if (this.mcpServer.toolInputSchemaJson(name) === undefined) continue;
      throw new WorkflowError(
        "configuration",
        `An ordinary tool of this server is named "${name}" too; names must be unique`,
      );
    }
  }

  private list(method: string, field: string, entries: readonly JsonObject[]): void {
    this.wrap(method, (rest, request, ctx) => this.appended(rest, request, ctx, field, entries));
  }

  private wrap(
    method: string,
    answer: (rest: RawHandler | undefined, request: RawRequest, ctx: ServerContext) => Promise<JsonObject>,
  ): void {
    const rest = this.handlers.get(method);
    this.handlers.set(
      method,
      this.guarded(method, (request, ctx) => {
        // What the ordinary handlers throw is theirs and goes out as it is.
        const passed =
          rest &&
          (async (r: RawRequest, c: ServerContext) =>
            rest(r, c).catch((e) => Promise.reject(new PassedOn(e))));
        return answer(passed, request, ctx);
      }),
    );
  }

  private guarded(method: string, handler: RawHandler): RawHandler {
    return async (request, ctx) => {
      try {
        return await tracedRequest(method, ctx.mcpReq._meta, () => handler(request, ctx));
      } catch (error) {
        if (error instanceof PassedOn) throw error.cause;
        const told = toJsonRpcError(error, method);
        if (told.message === "Internal error") {
          this.engine.log.error(
            { method, error: error instanceof Error ? error.stack : "thrown" },
            "request failed",
          );
        }
        throw told;
      }
    };
  }

  /** What the ordinary handler lists, and ours after it. */
  private async appended(
    rest: RawHandler | undefined,
    request: RawRequest,
    ctx: ServerContext,
    field: string,
    entries: readonly JsonObject[],
  ): Promise<JsonObject> {
    const ordinary = rest === undefined ? {} : await rest(request, ctx);
    const listed = ordinary[field];
    return { ...ordinary, [field]: [...(Array.isArray(listed) ? listed : []), ...entries] };
  }

  private async callTool(
    rest: RawHandler | undefined,
    request: RawRequest,
    ctx: ServerContext,
  ): Promise<JsonObject> {
    const params = request.params ?? {};
    const { name } = params;
    if (typeof name !== "string")
      throw new WorkflowError("invalid_request", "Invalid params: name must be a string");
    const workflow = this.engine.workflows.get(name);
    if (workflow?.method === "tools/call") {
      return this.call({ workflow, arguments: params.arguments }, request, ctx);
    }
    if (!this.connection.isModern && params.task !== undefined) throw noTaskSupport(name);
    const companion = this.companions.find((tool) => tool.name === name);
    if (companion !== undefined)
      return callCompanion(companion, params.arguments, this.connection, ctx, this.engine);
    if (rest === undefined) throw new WorkflowError("unknown_workflow", `Tool ${name} not found`);
    return rest(request, ctx);
  }

  private async getPrompt(
    rest: RawHandler | undefined,
    request: RawRequest,
    ctx: ServerContext,
  ): Promise<JsonObject> {
    const params = request.params ?? {};
    const workflow = this.byMethod["prompts/get"].find((candidate) => candidate.name === params.name);
    if (workflow !== undefined) return this.call({ workflow, arguments: params.arguments }, request, ctx);
    if (rest === undefined)
      throw new WorkflowError("unknown_workflow", `Prompt ${String(params.name)} not found`);
    return rest(request, ctx);
  }

  private async readResource(
    rest: RawHandler | undefined,
    request: RawRequest,
    ctx: ServerContext,
  ): Promise<JsonObject> {
    const uri = request.params?.uri;
    if (typeof uri !== "string")
      throw new WorkflowError("invalid_request", "Invalid params: uri must be a string");
    for (const workflow of this.byMethod["resources/read"]) {
      const args = matchUri(workflow, uri);
      if (args !== undefined) return this.call({ workflow, arguments: args, uri }, request, ctx);
    }
    if (rest === undefined) throw new WorkflowError("unknown_workflow", `Resource ${uri} not found`);
    return rest(request, ctx);
  }

  private call(call: WorkflowCall, request: RawRequest, ctx: ServerContext): Promise<JsonObject> {
    return callWorkflow(this.connection, request, ctx, call, {
      engine: this.engine,
      inlineWaitMs: this.inlineWaitMs,
      onCreated: (owner, view) => this.attend(owner, view, ctx),
    });
  }

  /** Tells an open session of the tasks that its 2025-11-25 client made, and asks it their questions. */
  private attend(owner: Owner, created: TaskView, ctx: ServerContext): void {
    if (!this.connection.canAskLive(ctx) || isTerminal(created.task.status)) return;
    const { taskId } = created.task;
    const asker = askOnSession(this.connection, this.engine, owner);
    let told = created.task.status;
    const look = async () => {
      const view = await this.engine.peek(owner, taskId);
      asker.look(view);
      if (view.task.status === told) return;
      told = view.task.status;
      if (isTerminal(told)) end();
      await this.server.notification(statusNotification(view));
    };
    const unlisten = this.engine.listen(owner, taskId, () => void look().catch(() => {}));
    const end = () => {
      unlisten();
      asker.end();
      this.connection.closed.signal.removeEventListener("abort", end);
    };
    this.connection.closed.signal.addEventListener("abort", end);
  }
}

/** Marks an error of an ordinary handler on its way through. */
class PassedOn extends Error {
  constructor(error: unknown) {
    super("passed on", { cause: error });
  }
}

function matchUri(workflow: Workflow, uri: string): JsonObject | undefined {
  const { uri: pattern } = workflow.kind as Extract<Workflow["kind"], { kind: "resource" }>;
  if (!isTemplate(pattern)) return uri === pattern ? {} : undefined;
  const variables = new UriTemplate(pattern).match(uri);
  return variables === null ? undefined : (variables as JsonObject);
}
