/** Routes one HTTP request to where it belongs: a poll, an era's entry, a session, a listen for tasks. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { toNodeHandler } from "@modelcontextprotocol/node";
import {
  type AuthInfo,
  bearerAuthChallengeResponse,
  createMcpHandler,
  isInitializeRequest,
  isLegacyRequest,
  type McpHandlerRequestOptions,
  OAuthError,
  OAuthErrorCode,
  type ServerNotifier,
} from "@modelcontextprotocol/server";
import { isJsonObject, type JsonObject } from "../contract/json.js";
import type { Owner } from "../contract/owner.js";
import type { TaskEngine } from "../engine/engine.js";
import { withTimeout } from "../engine/timeout.js";
import type { ServeHttpOptions } from "./http-options.js";
import { listenedTaskIds } from "./listen.js";
import { listenOverHttp } from "./listen-http.js";
import { makeServer } from "./make-server.js";
import { type OwnerPolicy, ownerOf, ownerResolver } from "./owner.js";
import { Polls } from "./polls.js";
import { readBody } from "./read-body.js";
import { errorResponse, Sessions } from "./sessions.js";

/** Who sends a request, as far as HTTP tells. */
interface Sender {
  readonly address: string;
  readonly authInfo?: AuthInfo;
  readonly sessionId?: string;
}

/** One server's answer to every HTTP request on its MCP path. */
export class HttpHandler {
  private readonly addresses = new WeakMap<Request, string>();
  private readonly policy: OwnerPolicy;
  private readonly resolveOwner: ReturnType<typeof ownerResolver>;
  private readonly entry: ReturnType<typeof createMcpHandler>;
  private readonly sessions: Sessions;
  private readonly polls: Polls;
  private readonly closing = new AbortController();
  private readonly open = new Set<Promise<void>>();
  private readonly maxBodyBytes: number;

  constructor(
    private readonly engine: TaskEngine,
    private readonly options: ServeHttpOptions,
    onLoopback: boolean,
  ) {
    this.maxBodyBytes = options.maxBodyBytes ?? 4_194_304;
    this.policy = {
      strangers: onLoopback && options.allowAnonymous !== true ? "local" : "anonymous",
      addressOf: (request) => this.addresses.get(request),
    };
    this.resolveOwner = ownerResolver(this.policy);
    this.entry = createMcpHandler(
      (context) => makeServer(engine, options, this.attachOptions(context)).then(({ server }) => server),
      {
        onerror: (error) => engine.log.debug({ reason: reasonOf(error) }, "request refused"),
        maxRequestBodySize: this.maxBodyBytes,
      },
    );
    this.sessions = new Sessions({ max: 1000, idleMs: 1_800_000, ...options.sessions });
    const { name, version, title } = options;
    this.polls = new Polls(engine, { name, version, ...(title !== undefined && { title }) });
  }

  async serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const address = req.socket.remoteAddress ?? "unknown";
    const authInfo = await this.authenticate(req);
    if (authInfo instanceof Response) return respond(req, res, authInfo);
    const sessionId = req.headers["mcp-session-id"];
    const sender: Sender = {
      address,
      ...(authInfo !== undefined && { authInfo }),
      ...(typeof sessionId === "string" && { sessionId }),
    };
    if (req.method !== "POST") return this.forward(req, res, sender, undefined);

    if (!(req.headers["content-type"] ?? "").toLowerCase().startsWith("application/json")) {
      return respond(
        req,
        res,
        errorResponse(415, -32_000, "Unsupported Media Type: Content-Type must be application/json"),
      );
    }
    const bytes = await readBody(req, this.maxBodyBytes);
    if (bytes === undefined) {
      const limit = `Request too large: at most ${this.maxBodyBytes} bytes are taken`;
      return respond(req, res, errorResponse(413, -32_600, limit));
    }
    let body: unknown;
    try {
      body = JSON.parse(bytes.toString("utf8"));
    } catch {
      return respond(req, res, errorResponse(400, -32_700, "Parse error: Invalid JSON"));
    }
    const polled = await this.poll(req, body, sender);
    if (polled === undefined) return this.forward(req, res, sender, body);
    // With its length known the answer leaves in one piece; chunks cost as much as everything before them.
    const length = Buffer.byteLength(polled);
    res.writeHead(200, { "content-type": "application/json", "content-length": length }).end(polled);
  }

  get notify(): ServerNotifier {
    return this.entry.notify;
  }

  /** @param farewellMs how long calls that wait have to be answered with a handle, before their streams are ended */
  async close(farewellMs: number): Promise<void> {
    this.closing.abort();
    await withTimeout(Promise.all(this.open), farewellMs);
    await this.sessions.close();
    await this.entry.close();
  }

  private async poll(req: IncomingMessage, body: unknown, sender: Sender): Promise<string | undefined> {
    if (!isJsonObject(body) || body.method !== "tasks/get") return undefined;
    const owner = this.ownerOf(sender);
    if (sender.sessionId === undefined && req.headers["mcp-method"] !== undefined) {
      return this.polls.modern(req.headers, body, owner);
    }
    if (req.headers["mcp-method"] !== undefined || claimsEnvelope(body)) return undefined;
    if (sender.sessionId === undefined)
      return this.polls.legacy(req.headers, body, owner, { spoken: undefined });
    const connection = this.sessions.connection(sender.sessionId, this.principalOf(sender));
    return connection && this.polls.legacy(req.headers, body, owner, connection);
  }

  private forward(req: IncomingMessage, res: ServerResponse, sender: Sender, body: unknown): Promise<void> {
    const fetch = async (request: Request) => {
      this.addresses.set(request, sender.address);
      const auth = sender.authInfo === undefined ? {} : { authInfo: sender.authInfo };
      const response = await this.route(
        request,
        sender,
        body === undefined ? auth : { ...auth, parsedBody: body },
      );
      this.polls.learn(req.headers, body, response.status);
      return response;
    };
    const onerror = (error: Error) => this.engine.log.warn({ error: error.name }, "http");
    // Node's own type says that a server's request may lack a method; it never does.
    const request = req as IncomingMessage & { method: string; url: string };
    const answered = toNodeHandler({ fetch }, { maxRequestBodySize: this.maxBodyBytes, onerror })(
      request,
      res,
      body,
    );
    if (isJsonObject(body) && mayWait(body.method)) {
      const settled = answered.catch(() => {}).finally(() => this.open.delete(settled));
      this.open.add(settled);
    }
    return answered;
  }

  private async route(request: Request, sender: Sender, given: McpHandlerRequestOptions): Promise<Response> {
    const { sessionId } = sender;
    const principal = this.principalOf(sender);
    if (request.method !== "POST") {
      return sessionId === undefined
        ? this.entry.fetch(request, given)
        : this.sessions.serve(sessionId, request, principal, given);
    }
    const body = given.parsedBody;
    if (!(await isLegacyRequest(request, body))) {
      if (listenedTaskIds(body) === undefined) return this.entry.fetch(request, given);
      return listenOverHttp(
        this.entry,
        request,
        body as JsonObject,
        this.engine,
        this.ownerOf(sender),
        given,
      );
    }
    if (sessionId !== undefined) return this.sessions.serve(sessionId, request, principal, given);
    if (!isInitializeRequest(body)) return this.entry.fetch(request, given);
    const context = {
      era: "legacy" as const,
      requestInfo: request,
      ...(sender.authInfo && { authInfo: sender.authInfo }),
    };
    const make = (ofSession: string) =>
      makeServer(this.engine, this.options, {
        ...this.attachOptions(context),
        owner: (caller) => this.resolveOwner({ sessionId: ofSession, ...caller }),
      });
    return this.sessions.open(request, make, principal, { ...given, parsedBody: body });
  }

  private attachOptions(
    context: Parameters<typeof makeServer>[2]["context"],
  ): Parameters<typeof makeServer>[2] {
    const { companions, inlineWaitMs } = this.options;
    return {
      context,
      owner: this.resolveOwner,
      closing: this.closing.signal,
      ...(companions !== undefined && { companions }),
      ...(inlineWaitMs !== undefined && { inlineWaitMs }),
    };
  }

  private ownerOf({ address, authInfo, sessionId }: Sender): Owner {
    return ownerOf(this.policy.strangers, address, authInfo, sessionId);
  }

  /** What binds a session to who opened it. */
  private principalOf({ authInfo, address }: Sender): string {
    return authInfo === undefined ? "" : ownerOf(this.policy.strangers, address, authInfo).id;
  }

  /** @returns the caller, `undefined` where none is asked for, or the answer that refuses the request */
  private async authenticate(req: IncomingMessage): Promise<AuthInfo | Response | undefined> {
    const { verify, resourceMetadataUrl } = this.options;
    if (verify === undefined) return undefined;
    const challenge = (message: string) =>
      bearerAuthChallengeResponse(
        new OAuthError(OAuthErrorCode.InvalidToken, message),
        resourceMetadataUrl === undefined ? {} : { resourceMetadataUrl },
      );
    const token = /^Bearer +(\S+)$/i.exec(req.headers.authorization ?? "")?.[1];
    if (token === undefined) return challenge("Send a bearer token in the Authorization header");
    try {
      const principal = await verify(token);
      if (principal === undefined) return challenge("The token is not accepted");
      return { token, clientId: principal.client ?? principal.subject, scopes: [], extra: { ...principal } };
    } catch {
      // Why a token was refused is for the operator's hook to log, not for whoever holds the token.
      return challenge("The token is not accepted");
    }
  }
}

/** Whether a request of this method may stand behind a workflow, and wait for it. */
function mayWait(method: unknown): boolean {
  return method === "tools/call" || method === "prompts/get" || method === "resources/read";
}

/** Why the entry refused a request: its word for it alone, since the message quotes what the client sent. */
function reasonOf({ name, message }: Error): string {
  return /^Rejected inbound request \(([a-z-]+)\)/.exec(message)?.[1] ?? name;
}

/** Whether a body carries a 2026-07-28 envelope, well-formed or not. */
function claimsEnvelope(body: JsonObject): boolean {
  const meta = isJsonObject(body.params) && isJsonObject(body.params._meta) ? body.params._meta : {};
  return "io.modelcontextprotocol/protocolVersion" in meta;
}

function respond(req: IncomingMessage, res: ServerResponse, response: Response): Promise<void> {
  const request = req as IncomingMessage & { method: string; url: string };
  return toNodeHandler({ fetch: async () => response })(request, res, {});
}
