/** What the binding knows about the client at the other end of one SDK server instance. */
import { randomUUID } from "node:crypto";
import { setMaxListeners } from "node:events";
import type { McpRequestContext, ServerContext } from "@modelcontextprotocol/server";
import { isJsonObject, type Json, type JsonObject } from "../contract/json.js";
import type { Owner } from "../contract/owner.js";
import type { Generation } from "../contract/task.js";
import { CLIENT_CAPABILITIES } from "../wire/codec.js";
import type { SdkServer } from "./sdk-internals.js";

/** Tells whose tasks a request may see. */
export type OwnerResolver = (caller: Caller) => Owner;

/** The 2025-era generation that a client has shown itself to speak. */
export type Spoken = Exclude<Generation, "2026-07-28"> | undefined;

/** Who is answered in the words that it has shown to speak. */
export interface Speaker {
  spoken: Spoken;
}

/** What is known of who sends a request. */
export interface Caller {
  readonly authInfo?: NonNullable<ServerContext["http"]>["authInfo"];
  readonly sessionId?: string;
  /** Absent on stdio. */
  readonly request?: Request;
}

/** One SDK server instance and its client: a stdio process, an HTTP session, or a single stateless HTTP request. */
export class Connection {
  readonly id = randomUUID();
  /** The 2025-era generation this client has shown itself to speak. */
  spoken: Spoken;
  readonly closed = new AbortController();
  private readonly streams = new Map<string, AbortController>();
  private standing: AbortController | undefined;
  /** Draft calls whose task is not written yet, and whether they have been cancelled meanwhile. */
  private readonly making = new Set<{ requestId: string; taskId: string; cancelled: boolean }>();

  constructor(
    readonly server: SdkServer,
    private readonly context: McpRequestContext | undefined,
    private readonly resolveOwner: OwnerResolver,
    private readonly closing: AbortSignal | undefined,
  ) {
    // One for each task whose status is pushed.
    setMaxListeners(0, this.closed.signal);
  }

  get isModern(): boolean {
    if (this.context !== undefined) return this.context.era === "modern";
    return (this.server.getNegotiatedProtocolVersion() ?? "") >= "2026-07-28";
  }

  /** Whether the server can send requests of its own while a request is open: the 2025 era, on stdio or in a session. */
  canAskLive(ctx: ServerContext): boolean {
    return !this.isModern && (ctx.http === undefined || ctx.sessionId !== undefined);
  }

  /**
   * Aborted when nobody hears a request's answer any more: it was cancelled, or its stream is closed. Of the latter the
   * SDK tells nothing in a session, where it leaves room for a client to resume the stream; without stored events none can.
   */
  signal(ctx: ServerContext): AbortSignal {
    const stream = this.streams.get(JSON.stringify(ctx.mcpReq.id));
    return stream === undefined ? ctx.mcpReq.signal : AbortSignal.any([ctx.mcpReq.signal, stream.signal]);
  }

  /** Aborted when a call should wait no longer: nobody hears its answer any more, or the server is about to close. */
  patience(ctx: ServerContext): AbortSignal {
    const gone = this.signal(ctx);
    return this.closing === undefined ? gone : AbortSignal.any([gone, this.closing]);
  }

  /**
   * The stream for what the server has to say unasked: stdio's is always there, a session's while its client holds it
   * open. @returns aborted when it closes; `undefined` while there is none
   */
  standingStream(): AbortSignal | undefined {
    if (this.isModern) return undefined;
    return this.context?.requestInfo === undefined ? this.closed.signal : this.standing?.signal;
  }

  /** A session's client has opened that stream. @returns to be told that it has closed */
  standingStreamOpened(): () => void {
    const stream = new AbortController();
    this.standing = stream;
    return () => {
      stream.abort();
      if (this.standing === stream) this.standing = undefined;
    };
  }

  /** The request is about to be answered on a stream of its own. @returns to be told whether the stream was read to its end */
  streamOpened(requestId: Json): (heard: boolean) => void {
    const key = JSON.stringify(requestId);
    const stream = new AbortController();
    this.streams.set(key, stream);
    return (heard) => {
      if (!heard) stream.abort();
      if (this.streams.get(key) === stream) this.streams.delete(key);
    };
  }

  /** A draft call is about to make its task. @returns to be asked, once the row is there, whether it was cancelled */
  makesTask(requestId: string, taskId: string): () => boolean {
    const call = { requestId, taskId, cancelled: false };
    this.making.add(call);
    return () => {
      this.making.delete(call);
      return call.cancelled;
    };
  }

  /** A call was cancelled, named by its task or else by its request id: there may be no row yet to be found by either. */
  callCancelled(requestId: string | undefined, taskId: string | undefined): void {
    for (const call of this.making) {
      if (taskId === undefined ? call.requestId === requestId : call.taskId === taskId) call.cancelled = true;
    }
  }

  owner(ctx: ServerContext): Owner {
    return this.ownerOf(ctx.http?.authInfo, ctx.sessionId, ctx.http?.req);
  }

  ownerOf(authInfo: Caller["authInfo"], sessionId?: string, request = this.context?.requestInfo): Owner {
    const auth = authInfo ?? this.context?.authInfo;
    return this.resolveOwner({
      ...(auth !== undefined && { authInfo: auth }),
      ...(sessionId !== undefined && { sessionId }),
      ...(request !== undefined && { request }),
    });
  }

  /** What the client says it can do: in this request (2026-07-28), or since `initialize`. */
  capabilities(ctx: ServerContext): JsonObject | undefined {
    const declared = this.isModern
      ? (ctx.mcpReq.envelope as JsonObject | undefined)?.[CLIENT_CAPABILITIES]
      : this.server.getClientCapabilities();
    return isJsonObject(declared) ? declared : undefined;
  }
}
