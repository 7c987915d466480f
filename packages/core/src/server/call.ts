/** Requests that a workflow may stand behind: which generation asks, and how it is answered. */
import type { ServerContext } from "@modelcontextprotocol/server";
import { WorkflowError } from "../contract/errors.js";
import { canonicalJson, isJsonObject, type JsonObject } from "../contract/json.js";
import type { Owner } from "../contract/owner.js";
import { isTerminal } from "../contract/task.js";
import type { Workflow } from "../contract/workflow.js";
import type { CreateCall } from "../engine/create.js";
import type { TaskEngine, TaskView } from "../engine/engine.js";
import { asOpen } from "../engine/questions.js";
import { IDEMPOTENCY_KEY, JsonRpcError, METHOD_NOT_FOUND } from "../wire/codec.js";
import * as draft from "../wire/draft.js";
import { canAsk, encodeInputRequests } from "../wire/input.js";
import * as v2025 from "../wire/v2025-11-25.js";
import * as v2026 from "../wire/v2026-07-28.js";
import { askBefore, askOnOpenCall } from "./ask.js";
import type { Connection } from "./connection.js";
import { REJOIN, waitInline } from "./inline.js";
import type { RawRequest } from "./sdk-internals.js";

/** The purpose under which the answers of a multi round-trip request are signed. */
const BEFORE = "before";

export interface CallOptions {
  readonly engine: TaskEngine;
  readonly inlineWaitMs: number;
  /** Called with every task that a 2025-11-25 client made on this connection. */
  readonly onCreated: (owner: Owner, view: TaskView) => void;
}

/** What of a request names its work. */
export interface WorkflowCall {
  readonly workflow: Workflow;
  readonly arguments: unknown;
  readonly uri?: string;
}

/** Answers a call of a workflow in the asker's generation. @throws JsonRpcError, WorkflowError */
export async function callWorkflow(
  connection: Connection,
  request: RawRequest,
  ctx: ServerContext,
  call: WorkflowCall,
  options: CallOptions,
): Promise<JsonObject> {
  const owner = connection.owner(ctx);
  const params = request.params ?? {};
  const meta = isJsonObject(params._meta) ? params._meta : undefined;
  const key = meta?.[IDEMPOTENCY_KEY];
  if (key !== undefined && typeof key !== "string") {
    throw new WorkflowError("invalid_request", `_meta["${IDEMPOTENCY_KEY}"] must be a string`);
  }
  const base = {
    owner,
    workflow: call.workflow.name,
    arguments: call.arguments,
    connection: connection.id,
    requestId: JSON.stringify(ctx.mcpReq.id),
    ...(call.uri !== undefined && { uri: call.uri }),
    ...(key !== undefined && { idempotencyKey: key }),
  };
  return connection.isModern
    ? callModern(connection, ctx, call.workflow, base, options)
    : callLegacy(connection, ctx, params, meta, call.workflow, base, options);
}

type BaseCall = Omit<CreateCall, "generation">;

// ── 2025 era ─────────────────────────────────────────────────────────────────────────────────────────────────────────

async function callLegacy(
  connection: Connection,
  ctx: ServerContext,
  params: JsonObject,
  meta: JsonObject | undefined,
  workflow: Workflow,
  base: BaseCall,
  options: CallOptions,
): Promise<JsonObject> {
  const asked2025 = v2025.decodeTaskRequest(params);
  if (asked2025 !== undefined) {
    if (workflow.method !== "tools/call" || workflow.task === "forbidden") throw noTaskSupport(workflow.name);
    connection.spoken = "2025-11-25";
    return answer2025(connection, ctx, base, asked2025.ttl, options);
  }
  // Guessable ids of strangers would collide and be readable: their task meta is ignored (SEP-1686, 4.1).
  const askedDraft =
    base.owner.kind === "anonymous" || workflow.task === "forbidden"
      ? undefined
      : draft.decodeTaskRequest(meta);
  if (askedDraft !== undefined) {
    connection.spoken = "draft";
    return answerDraft(connection, ctx, base, askedDraft, options);
  }
  if (workflow.task === "required" && workflow.method === "tools/call") {
    throw new JsonRpcError(METHOD_NOT_FOUND, `Tool "${workflow.name}" runs only as a task: send params.task`);
  }
  const view = await options.engine.create({ ...base, generation: "2025-11-25" });
  return waitInline(connection, ctx, options.engine, base.owner, workflow, view, options.inlineWaitMs);
}

async function answer2025(
  connection: Connection,
  ctx: ServerContext,
  base: BaseCall,
  ttl: number | undefined,
  { engine, onCreated }: CallOptions,
): Promise<JsonObject> {
  const view = await engine.create({
    ...base,
    generation: "2025-11-25",
    ask: (questions) => askBefore(connection, ctx, questions),
    ...(ttl !== undefined && { retentionMs: ttl }),
  });
  onCreated(base.owner, view);
  return v2025.encodeCreated(view);
}

/** The call stays open until the work ends; before its answer the client hears that the task is there (3.4). */
async function answerDraft(
  connection: Connection,
  ctx: ServerContext,
  base: BaseCall,
  { taskId, keepAlive }: draft.DraftTaskRequest,
  { engine }: CallOptions,
): Promise<JsonObject> {
  const { owner } = base;
  const wasCancelled = connection.makesTask(base.requestId ?? "", taskId);
  const created = await engine
    .create({
      ...base,
      generation: "draft",
      taskId,
      ...(keepAlive !== undefined && { retentionMs: keepAlive }),
    })
    .finally(wasCancelled);
  // A cancel that came while there was no row to find by its request.
  if (wasCancelled()) await engine.cancel(owner, created.task.taskId, "now");
  // Without a stream (a client that takes only JSON) the notification cannot be sent; the client polls instead.
  await ctx.mcpReq.notify(draft.createdNotification(created.task.taskId)).catch(() => {});
  const asker = askOnOpenCall(connection, ctx, engine, owner, "draft");
  try {
    const view = await engine.wait(owner, created.task.taskId, ({ task }) => isTerminal(task.status), {
      signal: connection.signal(ctx),
      onChange: asker.look,
    });
    if (isTerminal(view.task.status)) engine.audit("result.answered", view.task);
    return draft.encodeOpenCall(view);
  } finally {
    asker.end();
  }
}

/** What a tool without task support answers to `params.task` (2025-11-25). */
export function noTaskSupport(name: string): JsonRpcError {
  return new JsonRpcError(
    METHOD_NOT_FOUND,
    `Tool "${name}" does not support tasks: call it without params.task`,
  );
}

// ── 2026-07-28 ───────────────────────────────────────────────────────────────────────────────────────────────────────

async function callModern(
  connection: Connection,
  ctx: ServerContext,
  workflow: Workflow,
  base: BaseCall,
  options: CallOptions,
): Promise<JsonObject> {
  const { engine, inlineWaitMs } = options;
  const { owner } = base;
  const capabilities = connection.capabilities(ctx);
  const declared = v2026.declaresTasks(capabilities);
  if (workflow.task === "required" && !declared) throw v2026.missingTasks();

  const state = requestState(ctx);
  const responses = (ctx.mcpReq.inputResponses ?? {}) as JsonObject;
  const rejoined = state === undefined ? undefined : engine.unseal(REJOIN, owner, state);
  if (rejoined !== undefined) {
    const taskId = String(rejoined.taskId);
    const { task } = await engine.peek(owner, taskId);
    // The state names a task of this tool: it does not open another one's.
    if (task.workflow !== workflow.name) throw badState();
    const view = await engine.answer(owner, taskId, responses);
    return waitInline(connection, ctx, engine, owner, workflow, view, inlineWaitMs);
  }

  const asked = canonicalJson([workflow.name, (base.arguments ?? {}) as JsonObject]);
  const earlier = state === undefined ? {} : openState(engine, owner, state, asked);
  const answers = { ...earlier, ...responses };
  try {
    const view = await engine.create({
      ...base,
      generation: "2026-07-28",
      answers,
      ask: async (questions) => {
        const open = questions.map(asOpen);
        if (!open.every((question) => canAsk(capabilities, question))) return undefined;
        throw new MustReturn({
          resultType: "input_required",
          inputRequests: encodeInputRequests(open),
          requestState: engine.seal(BEFORE, owner, { asked, answers }),
        });
      },
    });
    if (declared && workflow.task !== "forbidden" && workflow.method === "tools/call") {
      return v2026.encodeCreated(view, capabilities);
    }
    return await waitInline(connection, ctx, engine, owner, workflow, view, inlineWaitMs);
  } catch (error) {
    if (error instanceof MustReturn) return error.result;
    throw error;
  }
}

/** Carries an `input_required` answer out of the engine's asking. */
class MustReturn extends Error {
  constructor(readonly result: JsonObject) {
    super("input required");
  }
}

function requestState(ctx: ServerContext): string | undefined {
  const state: unknown = ctx.mcpReq.requestState();
  if (state === undefined || typeof state === "string") return state;
  throw badState();
}

function openState(engine: TaskEngine, owner: Owner, state: string, asked: string): JsonObject {
  const opened = engine.unseal(BEFORE, owner, state);
  if (opened === undefined || opened.asked !== asked || !isJsonObject(opened.answers)) throw badState();
  return opened.answers;
}

function badState(): WorkflowError {
  return new WorkflowError(
    "invalid_request",
    "Invalid requestState: send it back unchanged, with the same tool and arguments, or start anew without it",
  );
}
