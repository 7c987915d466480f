/** A ready-made HTTP server: 2026-07-28 and 2025-era clients at one URL, the latter with sessions or without. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { ServerNotifier } from "@modelcontextprotocol/server";
import { WorkflowError } from "../contract/errors.js";
import type { JsonObject } from "../contract/json.js";
import type { TaskEngine } from "../engine/engine.js";
import { withTimeout } from "../engine/timeout.js";
import { companionsBeside } from "./companions.js";
import type { ServeHttpOptions } from "./http-options.js";
import { Webhooks } from "./webhooks.js";

/** A server that runs. */
export interface HttpServer {
  readonly url: string;
  readonly port: number;
  /** Tells clients that listen (2026-07-28) that tools, prompts or resources of this server have changed. */
  readonly notify: ServerNotifier;
  /**
   * Stops listening, answers the calls that wait with a handle of their task, and ends open streams. The engine stays
   * open: it is yours.
   */
  close(): Promise<void>;
}

/** What is told to strangers behind a proxy, where everyone would be the person at this machine. */
const FORWARDED = {
  jsonrpc: "2.0",
  id: null,
  error: {
    code: -32_000,
    message:
      "This server takes every caller for the person at its machine, and a proxy has sent this request on. Give it a verify hook (server.http.auth in taskferry.yaml), or set allowAnonymous.",
  },
};

/** How long closing waits for streams to end by themselves. */
const FAREWELL_MS = 1_000;
/** Connections that may wait to be accepted: after a restart all clients come back at once. The system may allow fewer. */
const BACKLOG = 4_096;
const LOOPBACK = new Set(["127.0.0.1", "::1", "localhost"]);
const LOOPBACK_NAMES = ["localhost", "127.0.0.1", "[::1]"];

/**
 * Serves an engine's workflows over Streamable HTTP.
 * @throws WorkflowError `configuration` if strangers beyond loopback could come in unasked, or a webhook leads nowhere
 */
export async function serveHttp(engine: TaskEngine, options: ServeHttpOptions): Promise<HttpServer> {
  const host = options.host ?? "127.0.0.1";
  const path = options.path ?? "/mcp";
  if (!path.startsWith("/")) {
    throw new WorkflowError("configuration", `The path "${path}" must begin with a slash, as /mcp does`);
  }
  const onLoopback = LOOPBACK.has(host);
  if (!onLoopback && options.verify === undefined && options.allowAnonymous !== true) {
    throw new WorkflowError(
      "configuration",
      `Serving on ${host} lets anyone who reaches it start workflows. Give a verify hook (server.http.auth in taskferry.yaml), or set allowAnonymous.`,
    );
  }
  if (!onLoopback && options.allowedHosts === undefined) {
    throw new WorkflowError(
      "configuration",
      `Serving on ${host} needs allowedHosts: the names that clients reach it by`,
    );
  }
  const trustsEveryone = options.verify === undefined && options.allowAnonymous !== true;
  // Said now, not to the first client.
  companionsBeside(engine, options);
  // Servers on stdio do without: what speaks HTTP is loaded here.
  const [{ hostHeaderValidation, originValidation }, { HttpHandler }] = await Promise.all([
    import("@modelcontextprotocol/node"),
    import("./http-handler.js"),
  ]);
  const webhooks = new Webhooks(engine, options, [path, "/health", "/ready"]);
  const handler = new HttpHandler(engine, options, onLoopback);
  const validHost = hostHeaderValidation([...(options.allowedHosts ?? LOOPBACK_NAMES)]);
  const validOrigin = originValidation([...(options.allowedOrigins ?? LOOPBACK_NAMES)]);

  const answering = new Set<ServerResponse>();
  const server = createServer((req, res) => {
    answering.add(res);
    res.once("close", () => answering.delete(res));
    if (!validHost(req, res) || !validOrigin(req, res)) return;
    const pathname = req.url === path ? path : pathOf(req.url ?? "/");
    if (pathname === "/health") return answerJson(res, 200, { status: "ok" });
    if (pathname === "/ready") {
      void engine.isReady().then((ready) => answerJson(res, ready ? 200 : 503, { ready }));
      return;
    }
    if (webhooks.serve(pathname, req, res)) return;
    if (pathname !== path) return answerJson(res, 404, { error: `Not found: MCP is served at ${path}` });
    if (trustsEveryone && isForwarded(req)) return answerJson(res, 403, FORWARDED);
    handler.serve(req, res).catch((error: unknown) => {
      engine.log.warn({ error: error instanceof Error ? error.name : "thrown" }, "http");
      if (res.headersSent) res.destroy();
      else
        answerJson(res, 500, {
          jsonrpc: "2.0",
          id: null,
          error: { code: -32_603, message: "Internal error" },
        });
    });
  });
  await listen(server, options.port ?? 0, host);
  const { port } = server.address() as AddressInfo;
  const shownHost = host.includes(":") ? `[${host}]` : host;
  return {
    url: `http://${shownHost}:${port}${path}`,
    port,
    notify: handler.notify,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      await handler.close(FAREWELL_MS);
      // Open streams have just been given their last words: only who does not take them is cut off.
      await withTimeout(Promise.all([...answering].map((res) => once(res, "close"))), FAREWELL_MS);
      server.closeAllConnections();
      await closed;
    },
  };
}

function listen(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      const why = error.code === "EADDRINUSE" ? "another program listens there" : error.message;
      reject(
        new WorkflowError("configuration", `Cannot listen on ${host}:${port}: ${why}`, { cause: error }),
      );
    });
    server.listen({ port, host, backlog: BACKLOG }, () => resolve());
  });
}

/** Whether a proxy says that somebody else has sent this. Not every proxy does. */
function isForwarded({ headers }: IncomingMessage): boolean {
  return headers.forwarded !== undefined || headers["x-forwarded-for"] !== undefined;
}

/** @returns the path of a request target; `undefined` for what is no target: `//` comes over the wire as well */
function pathOf(target: string): string | undefined {
  const base = "http://localhost";
  return URL.canParse(target, base) ? new URL(target, base).pathname : undefined;
}

function answerJson(res: ServerResponse, status: number, body: JsonObject): void {
  res.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}
