/**
 * GitHub's wire format over HTTP, played by a test: the routes in protocol-routes.ts over the state in
 * protocol-state.ts. Every answer (and every request body) is checked against GitHub's own OpenAPI description, entity
 * tags and rate limits behave as GitHub's do, and faults can be put in the way of any call.
 */
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { JSONParse, JSONStringify } from "json-with-bigint";
import { answerProblem, requestProblem } from "./openapi.js";
import { type Answer, type DispatchMode, ROUTES, refusal } from "./protocol-routes.js";
import { ProtocolState } from "./protocol-state.js";

/** One call that the server got. */
export interface Received {
  readonly method: string;
  /** The path in GitHub's description, e.g. `/repos/{owner}/{repo}/actions/runs/{run_id}`. */
  readonly route: string;
  readonly path: string;
  readonly query: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: Record<string, unknown>;
  readonly status: number | "cut";
}

/** Something that goes wrong instead of, or after, the next calls that match. */
export interface Fault {
  /** Matched against `METHOD /path`. */
  readonly on: RegExp;
  /**
   * An answer in place of the real one; `cut-before`: the connection breaks and nothing was done; `cut-after`: it was
   * done, and the connection breaks; `hang`: it was done, and nothing is answered.
   */
  readonly does: Answer | ((body: Record<string, unknown>) => Answer) | "cut-before" | "cut-after" | "hang";
  /** @default 1 */
  times?: number;
}

const LIMIT = 5000;

/** A GitHub on 127.0.0.1. */
export class ProtocolServer {
  readonly state = new ProtocolState();
  readonly received: Received[] = [];
  /** What was answered (or asked) against GitHub's description. A test fails if there is any. */
  readonly problems: string[] = [];
  mode: DispatchMode = "details";
  /** What is left of the hourly budget. */
  remaining = LIMIT;
  /** Whether storage honours `Range`. */
  storageKnowsRanges = true;
  readonly #faults: Fault[] = [];
  readonly #server: Server;
  readonly #storage: Server;
  #origin = "";
  #storageOrigin = "";

  private constructor() {
    this.#storage = createServer((request, response) => this.#giveLog(request, response));
    this.#server = createServer((request, response) => {
      this.#handle(request, response).catch((error: unknown) => {
        this.problems.push(String(error));
        response.destroy();
      });
    });
  }

  static async start(): Promise<ProtocolServer> {
    const server = new ProtocolServer();
    server.#origin = await listen(server.#server);
    server.#storageOrigin = await listen(server.#storage);
    return server;
  }

  /** The API's base URL. */
  get url(): string {
    return this.#origin;
  }

  fault(fault: Fault): void {
    this.#faults.push(fault);
  }

  /** Calls that match `METHOD /route`. */
  calls(pattern: RegExp): readonly Received[] {
    return this.received.filter(({ method, route }) => pattern.test(`${method} ${route}`));
  }

  get dispatches(): readonly Received[] {
    return this.calls(/^POST .*\/dispatches$/);
  }

  async close(): Promise<void> {
    for (const server of [this.#server, this.#storage]) {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", this.#origin);
    const method = request.method ?? "GET";
    const body = await bodyOf(request);
    const found = match(method, url.pathname);
    const record = (status: number | "cut") => {
      const route = found?.route ?? url.pathname;
      const { headers } = request;
      this.received.push({ method, route, path: url.pathname, query: url.search, headers, body, status });
    };
    const taken = this.#takeFault(`${method} ${url.pathname}`);
    const fault = typeof taken === "function" ? taken(body) : taken;
    if (fault === "cut-before") {
      record("cut");
      response.destroy();
      return;
    }
    if (typeof fault === "object") {
      record(fault.status);
      return this.#answer(request, response, fault);
    }
    if (found === undefined) {
      this.problems.push(`no such route: ${method} ${url.pathname}`);
      return this.#answer(request, response, refusal(404, "Not Found"));
    }
    if (method === "POST" && Object.keys(body).length > 0)
      this.#note(requestProblem(method, found.route, plain(body)));
    const answer = found.handle({
      origin: this.#origin,
      storage: this.#storageOrigin,
      state: this.state,
      mode: this.mode,
      apiVersion: String(request.headers["x-github-api-version"] ?? "2022-11-28"),
      params: found.params,
      query: url.searchParams,
      body,
    });
    if (answer.body !== undefined) {
      this.#note(answerProblem(method, found.route, answer.status, plain(answer.body)));
    }
    record(fault === undefined ? answer.status : "cut");
    if (fault === "cut-after") response.destroy();
    else if (fault !== "hang") this.#answer(request, response, answer);
  }

  #answer(request: IncomingMessage, response: ServerResponse, answer: Answer): void {
    const text = answer.body === undefined ? "" : JSONStringify(answer.body);
    const etag = `W/"${createHash("sha256").update(text).digest("hex").slice(0, 32)}"`;
    const tagged = request.method === "GET" && answer.status === 200;
    const unchanged = tagged && request.headers["if-none-match"] === etag;
    if (!unchanged) this.remaining = Math.max(0, this.remaining - 1);
    const now = this.state.now();
    const headers = {
      date: new Date(now).toUTCString(),
      "x-ratelimit-limit": `${LIMIT}`,
      "x-ratelimit-remaining": `${this.remaining}`,
      "x-ratelimit-reset": `${Math.ceil(now / 1000) + 1800}`,
      "x-ratelimit-resource": "core",
      ...(tagged ? { etag } : {}),
      ...(text === "" || unchanged ? {} : { "content-type": "application/json; charset=utf-8" }),
      ...answer.headers,
    };
    response.writeHead(unchanged ? 304 : answer.status, headers);
    response.end(unchanged ? undefined : text);
  }

  /** Where logs are kept: another service, which refuses GitHub's credentials. */
  #giveLog(request: IncomingMessage, response: ServerResponse): void {
    if (request.headers.authorization !== undefined) this.problems.push("credentials were sent to storage");
    const id = (request.url ?? "/").slice(1);
    const job = [...this.state.repositories.values()]
      .map((repository) => this.state.findJob(repository, id))
      .find((found) => found !== undefined);
    const bytes = Buffer.from(job?.log ?? "");
    const from = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? "")?.[1] ?? 0);
    const partial = from > 0 && this.storageKnowsRanges;
    if (partial && from >= bytes.length) {
      response.writeHead(416).end();
      return;
    }
    response.writeHead(partial ? 206 : 200, { "content-type": "text/plain" });
    response.end(partial ? bytes.subarray(from) : bytes);
  }

  #takeFault(call: string): Fault["does"] | undefined {
    const index = this.#faults.findIndex(({ on }) => on.test(call));
    const fault = this.#faults[index];
    if (fault === undefined) return undefined;
    fault.times = (fault.times ?? 1) - 1;
    if (fault.times <= 0) this.#faults.splice(index, 1);
    return fault.does;
  }

  #note(problem: string | undefined): void {
    if (problem !== undefined) this.problems.push(problem);
  }
}

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** The same JSON without `bigint`s, which Ajv does not know. */
function plain(value: unknown): unknown {
  return JSON.parse(JSONStringify(value));
}

const PATTERNS = Object.entries(ROUTES).map(([key, handle]) => {
  const [method = "", route = ""] = key.split(" ");
  const source = route.replace(/\{(\w+)\}/g, (_, name) => `(?<${name}>${name === "path" ? ".+" : "[^/]+"})`);
  return { method, route, handle, pattern: new RegExp(`^${source}$`) };
});

function match(method: string, path: string) {
  for (const candidate of PATTERNS) {
    const found = candidate.method === method ? candidate.pattern.exec(path) : null;
    if (found === null) continue;
    const params = Object.fromEntries(
      Object.entries(found.groups ?? {}).map(([name, value]) => [name, decodeURIComponent(value)]),
    );
    return { ...candidate, params };
  }
  return undefined;
}

async function bodyOf(request: IncomingMessage): Promise<Record<string, unknown>> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString("utf8");
  return text === "" ? {} : JSONParse(text);
}
