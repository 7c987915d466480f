/** A ready-made HTTP server: 2026-07-28 and 2025-era clients at one URL, the latter with sessions or without. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { hostHeaderValidation, originValidation, toNodeHandler } from "@modelcontextprotocol/node";
import {
  type AuthInfo,
  bearerAuthChallengeResponse,
  createMcpHandler,
  isInitializeRequest,
  isLegacyRequest,
  OAuthError,
  OAuthErrorCode,
  readRequestBody,
} from "@modelcontextprotocol/server";
import type { TaskEngine } from "../engine.js";
import { WorkflowError } from "../errors.js";
import type { JsonObject } from "../json.js";
import type { Principal } from "../owner.js";
import type { AttachOptions } from "./attach.js";
import { listenedTaskIds } from "./listen.js";
import { listenOverHttp } from "./listen-http.js";
import { ownerResolver } from "./owner.js";
import { makeServer, type ServerInfo } from "./serve-stdio.js";
import { errorResponse, type SessionOptions, Sessions } from "./sessions.js";

export interface ServeHttpOptions extends ServerInfo, Pick<AttachOptions, "companions" | "inlineWaitMs"> {
  /** @default 0: a free one */
  readonly port?: number;
  /** @default "127.0.0.1" */
  readonly host?: string;
  /** @default "/mcp" */
  readonly path?: string;
  /**
   * Verifies a bearer token and tells who it stands for; `undefined` or an error refuses it. With it, every request
   * needs a token, and tasks belong to the principal. Without it, only loopback is served, unless `allowAnonymous`.
   */
  readonly verify?: (
    token: string,
    request: Request,
  ) => Promise<Principal | undefined> | Principal | undefined;
  /** Serve strangers beyond loopback: ids are random, nothing is listed, limits count by address. @default false */
  readonly allowAnonymous?: boolean;
  /** Hostnames that the `Host` header may name. @default the loopback names; needed when `host` is another */
  readonly allowedHosts?: readonly string[];
  /** Hostnames that the `Origin` header of browsers may name. @default the loopback names */
  readonly allowedOrigins?: readonly string[];
  /** Sessions for 2025-era clients that initialize. @default `{ max: 1000, idleMs: 1800000 }` */
  readonly sessions?: Partial<SessionOptions>;
  /** The largest request body, in bytes. @default 4194304 */
  readonly maxBodyBytes?: number;
  /** The metadata URL that a 401 names (RFC 9728). */
  readonly resourceMetadataUrl?: string;
}

/** A server that runs. */
export interface HttpServer {
  readonly url: string;
  readonly port: number;
  /** Stops listening and ends open streams. The engine stays open: it is yours. */
  close(): Promise<void>;
}

const LOOPBACK = new Set(["127.0.0.1", "::1", "localhost"]);
const LOOPBACK_NAMES = ["localhost", "127.0.0.1", "[::1]"];

/**
 * Serves an engine's workflows over Streamable HTTP.
 * @throws WorkflowError `configuration` if strangers beyond loopback could come in unasked
 */
export async function serveHttp(engine: TaskEngine, options: ServeHttpOptions): Promise<HttpServer> {
  const host = options.host ?? "127.0.0.1";
  const path = options.path ?? "/mcp";
  const onLoopback = LOOPBACK.has(host);
  if (!onLoopback && options.verify === undefined && options.allowAnonymous !== true) {
    throw new WorkflowError(
      "configuration",
      `Serving on ${host} lets anyone who reaches it start workflows. Give a verify hook, or set allowAnonymous.`,
    );
  }
  if (!onLoopback && options.allowedHosts === undefined) {
    throw new WorkflowError(
      "configuration",
      `Serving on ${host} needs allowedHosts: the names that clients reach it by`,
    );
  }
  const face = new HttpFace(engine, options, onLoopback);
  const validHost = hostHeaderValidation([...(options.allowedHosts ?? LOOPBACK_NAMES)]);
  const validOrigin = originValidation([...(options.allowedOrigins ?? LOOPBACK_NAMES)]);

  const server = createServer((req, res) => {
    if (!validHost(req, res) || !validOrigin(req, res)) return;
    const { pathname } = new URL(req.url ?? "/", "http://localhost");
    if (pathname === "/health") return answerJson(res, 200, { status: "ok" });
    if (pathname === "/ready")
      return void face.ready().then((ready) => answerJson(res, ready ? 200 : 503, { ready }));
    if (pathname !== path) return answerJson(res, 404, { error: `Not found: MCP is served at ${path}` });
    void face.serve(req, res);
  });
  await listen(server, options.port ?? 0, host);
  const { port } = server.address() as AddressInfo;
  const shownHost = host.includes(":") ? `[${host}]` : host;
  return {
    url: `http://${shownHost}:${port}${path}`,
    port,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      await face.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** Routes one HTTP request to the era, session or listen that it belongs to. */
class HttpFace {
  private readonly addresses = new WeakMap<Request, string>();
  private readonly entry: ReturnType<typeof createMcpHandler>;
  private readonly sessions: Sessions;
  private readonly owner: ReturnType<typeof ownerResolver>;
  private readonly maxBodyBytes: number;

  constructor(
    private readonly engine: TaskEngine,
    private readonly options: ServeHttpOptions,
    onLoopback: boolean,
  ) {
    this.maxBodyBytes = options.maxBodyBytes ?? 4_194_304;
    this.owner = ownerResolver({
      strangers: onLoopback && options.allowAnonymous !== true ? "local" : "anonymous",
      addressOf: (request) => this.addresses.get(request),
    });
    this.entry = createMcpHandler(
      (context) => makeServer(engine, options, { ...options, owner: this.owner, context }),
      {
        onerror: (error) => engine.log.debug({ error: error.message }, "request refused"),
        maxRequestBodySize: this.maxBodyBytes,
      },
    );
    this.sessions = new Sessions({ max: 1000, idleMs: 1_800_000, ...options.sessions });
  }

  async serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const address = req.socket.remoteAddress ?? "unknown";
    const handler = toNodeHandler(
      { fetch: (request) => this.fetch(request, address) },
      {
        maxRequestBodySize: this.maxBodyBytes,
        onerror: (error) => this.engine.log.warn({ error: error.name }, "http"),
      },
    );
    // Node's own type says that a server's request may lack a method; it never does.
    await handler(req as IncomingMessage & { method: string; url: string }, res);
  }

  /** Whether the database answers. */
  async ready(): Promise<boolean> {
    return this.engine.isReady();
  }

  async close(): Promise<void> {
    await this.sessions.close();
    await this.entry.close();
  }

  private async fetch(request: Request, address: string): Promise<Response> {
    this.addresses.set(request, address);
    const authInfo = await this.authenticate(request);
    if (authInfo instanceof Response) return authInfo;
    const auth = authInfo === undefined ? {} : { authInfo };
    const sessionId = request.headers.get("mcp-session-id") ?? undefined;
    const principal = authInfo === undefined ? "" : this.owner({ authInfo }).id;

    if (request.method !== "POST") {
      return sessionId === undefined
        ? this.entry.fetch(request, auth)
        : this.sessions.serve(sessionId, request, principal, auth);
    }
    if (!(request.headers.get("content-type") ?? "").toLowerCase().startsWith("application/json")) {
      return errorResponse(415, -32_000, "Unsupported Media Type: Content-Type must be application/json");
    }
    const body = await readRequestBody(request, this.maxBodyBytes);
    if (body.tooLarge) {
      return errorResponse(413, -32_600, `Request too large: at most ${this.maxBodyBytes} bytes are taken`);
    }
    let parsedBody: unknown;
    try {
      parsedBody = JSON.parse(body.text);
    } catch {
      return errorResponse(400, -32_700, "Parse error: the request body is not valid JSON");
    }
    const given = { ...auth, parsedBody };
    if (!(await isLegacyRequest(request, parsedBody))) {
      if (listenedTaskIds(parsedBody) === undefined) return this.entry.fetch(request, given);
      const owner = this.owner({ request, ...auth });
      return listenOverHttp(this.entry, request, parsedBody as JsonObject, this.engine, owner, given);
    }
    if (sessionId !== undefined) return this.sessions.serve(sessionId, request, principal, given);
    if (!isInitializeRequest(parsedBody)) return this.entry.fetch(request, given);
    const context = { era: "legacy" as const, requestInfo: request, ...auth };
    const make = () => makeServer(this.engine, this.options, { ...this.options, owner: this.owner, context });
    return this.sessions.open(request, make, principal, given);
  }

  /** @returns the caller, `undefined` where none is asked for, or the answer that refuses the request */
  private async authenticate(request: Request): Promise<AuthInfo | Response | undefined> {
    const { verify, resourceMetadataUrl } = this.options;
    if (verify === undefined) return undefined;
    const challenge = (message: string) =>
      bearerAuthChallengeResponse(
        new OAuthError(OAuthErrorCode.InvalidToken, message),
        resourceMetadataUrl === undefined ? {} : { resourceMetadataUrl },
      );
    const token = /^Bearer +(\S+)$/i.exec(request.headers.get("authorization") ?? "")?.[1];
    if (token === undefined) return challenge("Send a bearer token in the Authorization header");
    try {
      const principal = await verify(token, request);
      if (principal === undefined) return challenge("The token is not accepted");
      return { token, clientId: principal.client ?? principal.subject, scopes: [], extra: { ...principal } };
    } catch {
      // Why a token was refused is for the operator's hook to log, not for whoever holds the token.
      return challenge("The token is not accepted");
    }
  }
}

function listen(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      const why = error.code === "EADDRINUSE" ? "another program listens there" : error.message;
      reject(
        new WorkflowError("configuration", `Cannot listen on ${host}:${port}: ${why}`, { cause: error }),
      );
    });
    server.listen(port, host, () => resolve());
  });
}

function answerJson(res: ServerResponse, status: number, body: JsonObject): void {
  res.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}
