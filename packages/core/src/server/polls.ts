/**
 * Polls, answered before any SDK server is built: `tasks/get` is the hot path, and an `McpServer` per request costs more
 * than the answer. Only requests that are surely good are answered here; all others take the SDK's entry, whose checks
 * and refusals thus stay the only ones. What a good request looks like is learned from the entry itself: a set of
 * headers and `_meta` that it has let through once is let through again.
 */
import type { IncomingHttpHeaders } from "node:http";
import { SUPPORTED_PROTOCOL_VERSIONS } from "@modelcontextprotocol/server";
import { isJsonObject, type Json, type JsonObject } from "../contract/json.js";
import type { Owner } from "../contract/owner.js";
import { isTerminal } from "../contract/task.js";
import type { TaskEngine } from "../engine/engine.js";
import { tracedRequest } from "../observe/observe.js";
import { CLIENT_CAPABILITIES, toJsonRpcError } from "../wire/codec.js";
import { encodeGet } from "../wire/v2026-07-28.js";
import type { Speaker } from "./connection.js";
import { answerLegacyGet } from "./methods.js";

const SERVER_INFO = "io.modelcontextprotocol/serverInfo";
/** How many different sets of headers and `_meta` are remembered: one per kind of client. */
const KNOWN_LIMIT = 1_000;

/** A `tasks/get` that can be answered here, if the entry has nothing against it. */
interface Poll {
  readonly id: string | number;
  readonly params: JsonObject;
  readonly taskId: string;
}

/** Answers polls of one HTTP server. */
export class Polls {
  private readonly known = new Set<string>();

  constructor(
    private readonly engine: TaskEngine,
    private readonly serverInfo: JsonObject,
  ) {}

  /** @returns the response body, or `undefined`: ask the entry, and tell `learn` how it answered */
  async modern(headers: IncomingHttpHeaders, body: unknown, owner: Owner): Promise<string | undefined> {
    const poll = asPoll(body);
    if (poll === undefined || headers["mcp-name"] !== poll.taskId) return undefined;
    if (!this.known.has(keyOf(headers, poll.params))) return undefined;
    const meta = poll.params._meta as JsonObject;
    try {
      const view = await tracedRequest("tasks/get", meta, () => this.engine.get(owner, poll.taskId));
      if (isTerminal(view.task.status)) this.engine.audit("result.retrieved", view.task);
      const result = encodeGet(view, meta[CLIENT_CAPABILITIES] as JsonObject);
      return reply(poll.id, { result: { ...result, _meta: { [SERVER_INFO]: this.serverInfo } } });
    } catch (error) {
      return reply(poll.id, { error: errorObject(error) });
    }
  }

  /** Remembers what the entry has let through: a 200 says that nothing was wrong with headers, envelope and capability. */
  learn(headers: IncomingHttpHeaders, body: unknown, status: number): void {
    const poll = status === 200 ? asPoll(body) : undefined;
    if (poll === undefined || !isJsonObject(poll.params._meta)) return;
    if (this.known.size >= KNOWN_LIMIT) this.known.clear();
    this.known.add(keyOf(headers, poll.params));
  }

  /**
   * A 2025-era poll, answered with JSON where the SDK's transport would open an event stream for it.
   * @returns the response body, or `undefined`: ask the SDK
   */
  async legacy(
    headers: IncomingHttpHeaders,
    body: unknown,
    owner: Owner,
    speaker: Speaker,
  ): Promise<string | undefined> {
    const poll = asPoll(body);
    const accept = headers.accept ?? "";
    const version = headers["mcp-protocol-version"];
    if (poll === undefined || !accept.includes("application/json") || !accept.includes("text/event-stream"))
      return undefined;
    if (version !== undefined && !SUPPORTED_PROTOCOL_VERSIONS.includes(String(version))) return undefined;
    try {
      const answer = () => answerLegacyGet(speaker, poll.params, owner, this.engine);
      return reply(poll.id, { result: await tracedRequest("tasks/get", poll.params._meta, answer) });
    } catch (error) {
      return reply(poll.id, { error: errorObject(error) });
    }
  }
}

/** Nothing but a plain, well-formed `tasks/get`. */
function asPoll(body: unknown): Poll | undefined {
  if (!isJsonObject(body) || body.method !== "tasks/get" || body.jsonrpc !== "2.0") return undefined;
  const { id, params } = body;
  if (typeof id !== "string" && !Number.isSafeInteger(id)) return undefined;
  if (!isJsonObject(params) || Object.keys(body).length !== 4) return undefined;
  const { taskId } = params;
  if (typeof taskId !== "string" || taskId.length === 0 || taskId.length > 256) return undefined;
  if (Object.keys(params).some((key) => key !== "taskId" && key !== "_meta")) return undefined;
  return { id: id as string | number, params, taskId };
}

function keyOf(headers: IncomingHttpHeaders, params: JsonObject): string {
  return JSON.stringify([
    headers["content-type"],
    headers.accept,
    headers["mcp-protocol-version"],
    headers["mcp-method"],
    params._meta as Json,
  ]);
}

function errorObject(error: unknown): JsonObject {
  const { code, message, data } = toJsonRpcError(error, "tasks/get");
  return { code, message, ...(data !== undefined && { data }) };
}

/** Byte for byte what the SDK would have sent. */
function reply(id: string | number, outcome: { result: JsonObject } | { error: JsonObject }): string {
  return "error" in outcome
    ? JSON.stringify({ jsonrpc: "2.0", id, error: outcome.error })
    : JSON.stringify({ result: outcome.result, jsonrpc: "2.0", id });
}
