/**
 * Questions to clients of the 2025 era, on calls that they hold open or on the stream that their session keeps open: one
 * live `elicitation/create` per question, across sessions and processes, asked again on the next open call when a client
 * went away without answering.
 */
import type { ServerContext } from "@modelcontextprotocol/server";
import { z } from "zod";
import type { Question } from "../contract/adapter.js";
import type { JsonObject } from "../contract/json.js";
import type { Owner } from "../contract/owner.js";
import type { StoredQuestion } from "../contract/task.js";
import type { TaskEngine, TaskView } from "../engine/engine.js";
import { asOpen } from "../engine/questions.js";
import { withRelatedTask } from "../wire/codec.js";
import { canAsk, encodeQuestion, type InputRequest, openQuestions } from "../wire/input.js";
import type { Connection } from "./connection.js";

/** Humans take hours; timers hold at most 24 days. */
const ASK_TIMEOUT_MS = 7 * 24 * 3_600_000;
const LEASE_MS = 30_000;
/** How soon a question that another call asks is looked at again: its client may be gone by then. */
const RETRY_MS = 1_000;
/** A client that keeps answering what does not fit is not asked for ever. */
const TRIES = 3;

const anyObject = z.looseObject({});

export interface Asker {
  /** Looks at a task's open questions: asks new ones, calls back those that were answered elsewhere. */
  look(view: TaskView): void;
  /** Ends all live questions; they stay open. */
  end(): void;
}

/** A way to a client. */
interface Channel {
  /** Names the channel in the lease of a question. */
  readonly holder: string;
  readonly capabilities: JsonObject | undefined;
  /** Aborted when what is asked now will not be heard; `undefined`: nothing can be asked now. */
  signal(): AbortSignal | undefined;
  send(request: InputRequest, signal: AbortSignal): Promise<JsonObject>;
}

/** Asks a task's questions on this call for as long as it is open. */
export function askOnOpenCall(
  connection: Connection,
  ctx: ServerContext,
  engine: TaskEngine,
  owner: Owner,
  generation: "draft" | "2025-11-25",
): Asker {
  const gone = connection.signal(ctx);
  const channel: Channel = {
    holder: `${connection.id}:${JSON.stringify(ctx.mcpReq.id)}`,
    capabilities: connection.capabilities(ctx),
    signal: () => (connection.canAskLive(ctx) ? gone : undefined),
    send: (request, signal) => send(ctx, request, signal),
  };
  return makeAsker(channel, engine, owner, generation);
}

/**
 * Asks a task's questions on the stream that a session keeps open: for clients that poll, and hold no call open until the
 * task has ended.
 */
export function askOnSession(connection: Connection, engine: TaskEngine, owner: Owner): Asker {
  const { server } = connection;
  const channel: Channel = {
    holder: `${connection.id}:session`,
    capabilities: server.getClientCapabilities() as JsonObject | undefined,
    signal: () => connection.standingStream(),
    send: async (request, signal) =>
      (await server.request({ ...request }, anyObject, { signal, timeout: ASK_TIMEOUT_MS })) as JsonObject,
  };
  return makeAsker(channel, engine, owner, "2025-11-25");
}

function makeAsker(
  channel: Channel,
  engine: TaskEngine,
  owner: Owner,
  generation: "draft" | "2025-11-25",
): Asker {
  const { holder, capabilities } = channel;
  const live = new Map<string, AbortController>();
  const tries = new Map<string, number>();
  let ended = false;
  let latest: TaskView;
  let retry: NodeJS.Timeout | undefined;

  const lookAgain = () => {
    retry ??= setTimeout(() => {
      retry = undefined;
      look(latest);
    }, RETRY_MS).unref();
  };

  const ask = async (
    view: TaskView,
    question: StoredQuestion,
    gone: AbortSignal,
    withdrawn: AbortController,
  ) => {
    const { taskId } = view.task;
    if (!(await engine.leaseQuestion(owner, taskId, question.key, holder, LEASE_MS))) return lookAgain();
    tries.set(question.key, (tries.get(question.key) ?? 0) + 1);
    const renewal = setInterval(() => {
      engine.leaseQuestion(owner, taskId, question.key, holder, LEASE_MS).catch(() => {});
    }, LEASE_MS / 3);
    renewal.unref();
    try {
      const request = encodeQuestion(question);
      const params = withRelatedTask(generation, taskId, request.params);
      const signal = AbortSignal.any([withdrawn.signal, gone]);
      const answer = await channel.send({ method: request.method, params }, signal);
      await engine.answer(owner, taskId, { [question.key]: answer });
    } finally {
      clearInterval(renewal);
      await engine.releaseQuestion(owner, taskId, question.key, holder).catch(() => {});
    }
  };

  const look = (view: TaskView) => {
    latest = view;
    const gone = channel.signal();
    if (ended || gone === undefined || gone.aborted) return;
    const open = openQuestions(view.questions).filter((question) => canAsk(capabilities, question));
    const keys = new Set(open.map((question) => question.key));
    for (const [key, withdrawn] of live) if (!keys.has(key)) withdrawn.abort("answered elsewhere");
    for (const question of open) {
      const tried = tries.get(question.key) ?? 0;
      if (live.has(question.key) || tried >= TRIES) continue;
      const withdrawn = new AbortController();
      live.set(question.key, withdrawn);
      ask(view, question, gone, withdrawn)
        // A client that went away, an answer that does not fit: the question stays open in its row.
        .catch(lookAgain)
        .finally(() => live.delete(question.key));
    }
  };

  return {
    look,
    end() {
      ended = true;
      clearTimeout(retry);
      for (const withdrawn of live.values()) withdrawn.abort("the call has ended");
    },
  };
}

/** Asks questions that come before the work on the open call. @returns `undefined` if the client cannot be asked them */
export async function askBefore(
  connection: Connection,
  ctx: ServerContext,
  questions: readonly Question[],
): Promise<JsonObject | undefined> {
  const capabilities = connection.capabilities(ctx);
  const asked = questions.map(asOpen);
  if (!connection.canAskLive(ctx) || !asked.every((question) => canAsk(capabilities, question)))
    return undefined;
  const answers: [string, JsonObject][] = [];
  for (const question of asked) {
    answers.push([question.key, await send(ctx, encodeQuestion(question), connection.signal(ctx))]);
  }
  return Object.fromEntries(answers);
}

async function send(ctx: ServerContext, request: InputRequest, signal: AbortSignal): Promise<JsonObject> {
  const answer = await ctx.mcpReq.send(request, anyObject, {
    signal,
    timeout: ASK_TIMEOUT_MS,
  });
  return answer as JsonObject;
}
