/** 2025-era HTTP sessions: one SDK server per session, bound to the owner that opened it. */
import { randomUUID } from "node:crypto";
import {
  type AuthInfo,
  type McpServer,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import { isJsonObject, type Json } from "../contract/json.js";
import type { Connection } from "./connection.js";

export interface SessionOptions {
  /** How many sessions may be open. @default 1000 */
  readonly max: number;
  /** How long a session without requests is kept, in milliseconds. @default 1800000 */
  readonly idleMs: number;
}

interface Session {
  readonly transport: WebStandardStreamableHTTPServerTransport;
  readonly server: McpServer;
  readonly connection: Connection;
  /** Who opened it: a session id alone must not open another principal's session. */
  readonly principal: string;
  usedAt: number;
  openRequests: number;
}

/** The open sessions of one server. */
export class Sessions {
  private readonly sessions = new Map<string, Session>();
  private readonly sweeper: NodeJS.Timeout;

  constructor(private readonly options: SessionOptions) {
    this.sweeper = setInterval(() => this.closeIdle(), Math.min(60_000, options.idleMs));
    this.sweeper.unref();
  }

  get size(): number {
    return this.sessions.size;
  }

  /** Opens a session for an `initialize` request and answers it. */
  async open(
    request: Request,
    make: (sessionId: string) => Promise<{ readonly server: McpServer; readonly connection: Connection }>,
    principal: string,
    options: { readonly authInfo?: AuthInfo; readonly parsedBody: unknown },
  ): Promise<Response> {
    if (this.sessions.size >= this.options.max) this.closeIdlest();
    if (this.sessions.size >= this.options.max) {
      return errorResponse(
        503,
        -32_000,
        `Too many sessions: at most ${this.options.max} may be open. Try again later.`,
      );
    }
    // Made before the server: what a server offers depends on whether its tasks have an owner.
    const sessionId = randomUUID();
    const { server, connection } = await make(sessionId);
    const transport: WebStandardStreamableHTTPServerTransport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => sessionId,
      onsessioninitialized: (id) => {
        this.sessions.set(id, {
          transport,
          server,
          connection,
          principal,
          usedAt: Date.now(),
          openRequests: 0,
        });
      },
      onsessionclosed: (id) => {
        this.sessions.delete(id);
      },
    });
    await server.connect(transport);
    return transport.handleRequest(request, options);
  }

  /** What is known of an open session's client; `undefined` if there is no such session of this principal. */
  connection(id: string, principal: string): Connection | undefined {
    const session = this.sessions.get(id);
    if (session === undefined || session.principal !== principal) return undefined;
    session.usedAt = Date.now();
    return session.connection;
  }

  /** Serves a request of an open session; one that is not there, or another principal's, is not found. */
  async serve(
    id: string,
    request: Request,
    principal: string,
    options: { readonly authInfo?: AuthInfo; readonly parsedBody?: unknown },
  ): Promise<Response> {
    const session = this.sessions.get(id);
    if (session === undefined || session.principal !== principal) {
      return errorResponse(404, -32_001, "Session not found: open a new one with initialize");
    }
    session.usedAt = Date.now();
    session.openRequests += 1;
    const streams = requestIdsOf(options.parsedBody).map((requestId) =>
      session.connection.streamOpened(requestId),
    );
    const standing = request.method === "GET" ? session.connection.standingStreamOpened() : undefined;
    const done = (heard: boolean) => {
      standing?.();
      session.openRequests -= 1;
      session.usedAt = Date.now();
      for (const ended of streams) ended(heard);
    };
    try {
      const response = await session.transport.handleRequest(request, options);
      return whenDelivered(response, request.signal, done);
    } catch (error) {
      done(false);
      throw error;
    }
  }

  async close(): Promise<void> {
    clearInterval(this.sweeper);
    const open = [...this.sessions.values()];
    this.sessions.clear();
    await Promise.all(open.map(({ server }) => server.close().catch(() => {})));
  }

  private closeIdle(): void {
    const before = Date.now() - this.options.idleMs;
    for (const [id, session] of this.sessions) {
      if (session.openRequests === 0 && session.usedAt < before) this.drop(id, session);
    }
  }

  private closeIdlest(): void {
    const idle = [...this.sessions].filter(([, session]) => session.openRequests === 0);
    const idlest = idle.sort(([, a], [, b]) => a.usedAt - b.usedAt)[0];
    if (idlest !== undefined && Date.now() - idlest[1].usedAt > 60_000) this.drop(...idlest);
  }

  private drop(id: string, session: Session): void {
    this.sessions.delete(id);
    void session.server.close().catch(() => {});
  }
}

/** A JSON-RPC error that belongs to no request, as an HTTP answer. */
export function errorResponse(status: number, code: number, message: string): Response {
  return Response.json({ jsonrpc: "2.0", error: { code, message }, id: null }, { status });
}

/** The ids of the requests in a message or a batch. */
function requestIdsOf(body: unknown): Json[] {
  const messages: readonly unknown[] = Array.isArray(body) ? body : [body];
  return messages.flatMap((message) =>
    isJsonObject(message) && message.method !== undefined && message.id !== undefined ? [message.id] : [],
  );
}

/**
 * Calls back when a response's body has been delivered (`heard`) or given up.
 * @param gone the request's signal: a body whose reader has left is cancelled only with its next chunk, which may never come
 */
function whenDelivered(response: Response, gone: AbortSignal, done: (heard: boolean) => void): Response {
  if (response.body === null) {
    done(true);
    return response;
  }
  const reader = response.body.getReader();
  let finished = false;
  const finish = (heard: boolean) => {
    if (finished) return;
    finished = true;
    gone.removeEventListener("abort", left);
    done(heard);
  };
  const left = () => {
    finish(false);
    void reader.cancel().catch(() => {});
  };
  if (gone.aborted) left();
  else gone.addEventListener("abort", left);
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done: ended, value } = await reader.read();
        if (!ended) return controller.enqueue(value);
        finish(true);
        controller.close();
      } catch (error) {
        finish(false);
        controller.error(error);
      }
    },
    cancel(reason) {
      finish(false);
      return reader.cancel(reason);
    },
  });
  return new Response(body, {
    status: response.status,
    statusText: response.statusText,
    headers: response.headers,
  });
}
