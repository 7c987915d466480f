/**
 * Google's Workflow Executions API (v1) over gRPC and REST, and the parts of the Workflows API that discovery asks, in
 * front of a {@link Cloud}. The gRPC service comes from the descriptors that `@google-cloud/workflows` ships; REST follows
 * the published reference, including what the generated client does not know: callbacks and the overflow field.
 */
import {
  createServer,
  type Server as HttpServer,
  type IncomingMessage,
  type ServerResponse,
} from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import * as grpc from "@grpc/grpc-js";
import { fromJSON } from "@grpc/proto-loader";
import { Cloud, type CloudExecution, CloudFault, type DueFault, type Operation } from "./cloud.js";
import { type Relay, startRelay } from "./relay.js";
import { retryDetails } from "./retry-details.js";

/** Google answers with the project's number, whatever the caller wrote. */
export const PROJECT_NUMBER = "415104041262";

const CODES = grpc.status as unknown as Readonly<Record<string, number>>;
const HTTP_STATUS: Readonly<Record<string, number>> = {
  INVALID_ARGUMENT: 400,
  FAILED_PRECONDITION: 400,
  UNAUTHENTICATED: 401,
  PERMISSION_DENIED: 403,
  NOT_FOUND: 404,
  RESOURCE_EXHAUSTED: 429,
  INTERNAL: 500,
  UNAVAILABLE: 503,
  DEADLINE_EXCEEDED: 504,
};

export interface ProtocolServer {
  readonly cloud: Cloud;
  /** `127.0.0.1:port`. */
  readonly grpcEndpoint: string;
  readonly restEndpoint: string;
  /** PEM certificates by key id, served where Google serves its own. */
  readonly certificates: Record<string, string>;
  close(): Promise<void>;
}

/** Starts both protocols on free ports of 127.0.0.1. */
export async function startProtocolServer(cloud = new Cloud()): Promise<ProtocolServer> {
  const certificates: Record<string, string> = {};
  const http = createServer((request, response) => void serveRest(cloud, certificates, request, response));
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  // gRPC goes through a relay, because only a socket can be cut the way that networks cut it.
  const relay = await startRelay();
  const { server, port } = await startGrpc(cloud, relay);
  relay.lead(port);
  return {
    cloud,
    certificates,
    grpcEndpoint: `127.0.0.1:${relay.port}`,
    restEndpoint: `http://127.0.0.1:${(http.address() as AddressInfo).port}`,
    async close() {
      await relay.close();
      server.forceShutdown();
      await stopHttp(http);
    },
  };
}

function stopHttp(http: HttpServer): Promise<void> {
  http.closeAllConnections();
  return new Promise((resolve) => http.close(() => resolve()));
}

type Wire = Record<string, unknown>;
type Handler = (cloud: Cloud, request: Wire) => unknown;

/** The four methods of the service, over the proto's own messages. */
const METHODS: Readonly<Record<string, { readonly operation: Operation; readonly handle: Handler }>> = {
  CreateExecution: {
    operation: "createExecution",
    handle(cloud, { parent, execution }) {
      const { location, workflow } = resource(String(parent));
      const {
        argument,
        labels,
        callLogLevel,
        disableConcurrencyQuotaOverflowBuffering: disableOverflow,
      } = execution as Wire;
      return toWire(
        cloud.create(location, workflow, {
          ...(argument ? { argument: String(argument) } : {}),
          labels: (labels ?? {}) as Record<string, string>,
          callLogLevel: callLogLevel as string | undefined,
          disableOverflow: disableOverflow === true,
        }),
        "FULL",
      );
    },
  },
  GetExecution: {
    operation: "getExecution",
    handle: (cloud, { name, view }) =>
      toWire(cloud.get(resource(String(name)).execution), view === "BASIC" ? "BASIC" : "FULL"),
  },
  CancelExecution: {
    operation: "cancelExecution",
    handle: (cloud, { name }) => toWire(cloud.cancel(resource(String(name)).execution), "FULL"),
  },
  ListExecutions: {
    operation: "listExecutions",
    handle(cloud, { parent, pageSize, pageToken, view, filter }) {
      const { location, workflow } = resource(String(parent));
      if (!cloud.listWorkflows(location).some(({ id }) => id === workflow)) {
        throw new CloudFault("NOT_FOUND", `Workflow ${workflow} does not exist`);
      }
      const limit = Math.min(Number(pageSize) || 100, view === "FULL" ? 100 : 1000);
      const from = Number(pageToken || 0);
      const all = cloud.list(workflow).filter(filterOf(String(filter ?? "")));
      const executions = all
        .slice(from, from + limit)
        .map((one) => toWire(one, view === "FULL" ? "FULL" : "BASIC"));
      return { executions, nextPageToken: from + limit < all.length ? String(from + limit) : "" };
    },
  },
};

function filterOf(filter: string): (execution: CloudExecution) => boolean {
  if (filter === "") return () => true;
  const state = /^state="([A-Z_]+)"$/.exec(filter)?.[1];
  if (state === undefined) throw new CloudFault("INVALID_ARGUMENT", "Only state is filtered here");
  return (execution) => execution.state === state;
}

function toWire(execution: CloudExecution, view: "BASIC" | "FULL"): Wire {
  const { location, workflow } = { location: "us-central1", workflow: execution.workflow };
  const basic = {
    name: `projects/${PROJECT_NUMBER}/locations/${location}/workflows/${workflow}/executions/${execution.id}`,
    state: execution.state,
    workflowRevisionId: execution.revision,
    ...(execution.startedMs !== undefined && { startTime: new Date(execution.startedMs).toISOString() }),
    ...(execution.endedMs !== undefined && { endTime: new Date(execution.endedMs).toISOString() }),
  };
  if (view === "BASIC") return basic;
  return {
    ...basic,
    argument: execution.argument,
    labels: execution.labels,
    ...(execution.callLogLevel && { callLogLevel: execution.callLogLevel }),
    ...(execution.result !== undefined && { result: execution.result }),
    ...(execution.error && { error: execution.error }),
    ...(execution.stateError && { stateError: execution.stateError }),
    status: { currentSteps: execution.steps },
  };
}

function resource(name: string): { location: string; workflow: string; execution: string } {
  const [, , , location = "", , workflow = "", , execution = ""] = name.split("/");
  return { location, workflow, execution };
}

async function startGrpc(cloud: Cloud, relay: Relay): Promise<{ server: grpc.Server; port: number }> {
  const descriptors = createRequire(import.meta.url)("@google-cloud/workflows/build/protos/protos.json");
  const definition = fromJSON(descriptors, { longs: String, enums: String, defaults: false });
  const service = definition["google.cloud.workflows.executions.v1.Executions"] as grpc.ServiceDefinition;
  const server = new grpc.Server();
  const handlers: Record<string, grpc.handleUnaryCall<Wire, Wire>> = {};
  for (const [method, { operation, handle }] of Object.entries(METHODS)) {
    handlers[method] = (call, callback) => {
      try {
        const answer = withFault(cloud.arrive(operation, call.request), () => handle(cloud, call.request));
        if (answer === HELD) return;
        if (answer === CUT) relay.cut();
        else callback(null, withTimestamps(answer as Wire));
      } catch (error) {
        callback(error instanceof CloudFault ? grpcError(error) : (error as Error));
      }
    };
  }
  server.addService(service, handlers);
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    ),
  );
  return { server, port };
}

const HELD = Symbol("held");
const CUT = Symbol("cut");

/** What the caller gets: an answer, nothing for ever, or a broken connection. */
function withFault(fault: DueFault | undefined, effect: () => unknown): unknown {
  if (fault?.kind === "refuse") throw fault.fault;
  if (fault?.kind === "cut") return CUT;
  const answer = effect();
  if (fault?.kind === "holdAnswer") return HELD;
  return fault?.kind === "loseAnswer" ? CUT : answer;
}

function grpcError(fault: CloudFault): Partial<grpc.StatusObject> {
  const code = CODES[fault.code] ?? grpc.status.UNKNOWN;
  const status = { code, details: fault.message };
  if (fault.retryDelaySeconds === undefined) return status;
  const metadata = new grpc.Metadata();
  metadata.set("grpc-status-details-bin", retryDetails(code, fault.message, fault.retryDelaySeconds));
  return { ...status, metadata };
}

/** proto-loader takes timestamps as messages, REST has them as text. */
function withTimestamps(answer: Wire): Wire {
  const executions = answer["executions"] as Wire[] | undefined;
  if (executions !== undefined) return { ...answer, executions: executions.map(withTimestamps) };
  const message = (time: unknown) => ({ seconds: Math.floor(Date.parse(String(time)) / 1000), nanos: 0 });
  const { startTime, endTime } = answer;
  return {
    ...answer,
    ...(startTime !== undefined && { startTime: message(startTime) }),
    ...(endTime !== undefined && { endTime: message(endTime) }),
  };
}

interface Route {
  readonly operation: Operation;
  readonly pattern: RegExp;
  readonly method?: string;
  handle(cloud: Cloud, path: string[], query: URLSearchParams, body: string, method: string): unknown;
}

const PARENT = "v1/(projects/[^/]+/locations/[^/]+/workflows/[^/]+)";
const rpc = (method: keyof typeof METHODS) => METHODS[method]?.handle as Handler;

const ROUTES: readonly Route[] = [
  {
    operation: "createExecution",
    method: "POST",
    pattern: new RegExp(`^/${PARENT}/executions$`),
    handle: (cloud, [parent], _query, body) =>
      rpc("CreateExecution")(cloud, { parent, execution: JSON.parse(body) }),
  },
  {
    operation: "listExecutions",
    method: "GET",
    pattern: new RegExp(`^/${PARENT}/executions$`),
    handle: (cloud, [parent], query) =>
      rpc("ListExecutions")(cloud, { parent, ...Object.fromEntries(query) }),
  },
  {
    operation: "cancelExecution",
    method: "POST",
    pattern: new RegExp(`^/(?:${PARENT})/executions/([^/]+):cancel$`),
    handle: (cloud, [parent, id]) => rpc("CancelExecution")(cloud, { name: `${parent}/executions/${id}` }),
  },
  {
    operation: "getExecution",
    method: "GET",
    pattern: new RegExp(`^/${PARENT}/executions/([^/:]+)$`),
    handle: (cloud, [parent, id], query) =>
      rpc("GetExecution")(cloud, { name: `${parent}/executions/${id}`, view: query.get("view") }),
  },
  {
    operation: "listCallbacks",
    method: "GET",
    pattern: new RegExp(`^/${PARENT}/executions/([^/]+)/callbacks$`),
    handle(cloud, [parent, id = ""], query) {
      const all = [...cloud.get(id).callbacks.values()];
      const limit = Math.min(Number(query.get("pageSize")) || 100, 100);
      const from = Number(query.get("pageToken") ?? 0);
      const callbacks = all.slice(from, from + limit).map((callback) => ({
        name: `${parent}/executions/${id}/callback/${callback.id}`,
        method: callback.method,
        // 64-bit integers are text, and zero is left out.
        ...(callback.waiters > 0 && { waiters: String(callback.waiters) }),
        ...(callback.payloads.length > 0 && { availablePayloads: callback.payloads }),
      }));
      return { callbacks, ...(from + limit < all.length && { nextPageToken: String(from + limit) }) };
    },
  },
  {
    operation: "sendCallback",
    pattern: new RegExp(`^/${PARENT}/executions/([^/]+)/callbacks/([^/]+)$`),
    handle(cloud, [, id = "", callback = ""], query, body, method) {
      cloud.send(id, callback, method, body === "" ? JSON.stringify(Object.fromEntries(query)) : body);
      return {};
    },
  },
  {
    operation: "listWorkflows",
    method: "GET",
    pattern: /^\/v1\/projects\/[^/]+\/locations\/([^/]+)\/workflows$/,
    handle(cloud, [location = ""], query) {
      const all = cloud.listWorkflows(location);
      const from = Number(query.get("pageToken") ?? 0);
      // Small pages, so that paging is seen with a handful of workflows.
      const workflows = all
        .slice(from, from + 2)
        .map(({ id, location: where, description, state = "ACTIVE" }) => ({
          name: `projects/${PROJECT_NUMBER}/locations/${where}/workflows/${id}`,
          ...(description !== undefined && { description }),
          state,
          revisionId: "000003-b1c",
        }));
      const unreachable = cloud.unreachable.map((where) => `projects/${PROJECT_NUMBER}/locations/${where}`);
      return { workflows, unreachable, ...(from + 2 < all.length && { nextPageToken: String(from + 2) }) };
    },
  },
];

async function serveRest(
  cloud: Cloud,
  certificates: Record<string, string>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const body = Buffer.concat(chunks).toString("utf8");
  const { pathname, searchParams } = new URL(request.url ?? "/", "http://127.0.0.1");
  const method = request.method ?? "GET";
  if (pathname === "/oauth2/v1/certs") return answerJson(response, 200, certificates);
  for (const route of ROUTES) {
    const match = route.pattern.exec(decodeURIComponent(pathname));
    if (match === null || (route.method !== undefined && route.method !== method)) continue;
    try {
      const fault = cloud.arrive(
        route.operation,
        body === "" ? pathname : JSON.parse(body),
        request.headers.authorization,
      );
      const answer = withFault(fault, () => route.handle(cloud, match.slice(1), searchParams, body, method));
      if (answer === HELD) return;
      if (answer === CUT) response.destroy();
      else answerJson(response, 200, answer);
    } catch (error) {
      answerFault(response, error);
    }
    return;
  }
  answerFault(response, new CloudFault("NOT_FOUND", `No method ${method} ${pathname}`));
}

function answerFault(response: ServerResponse, error: unknown): void {
  const fault = error instanceof CloudFault ? error : new CloudFault("INTERNAL", String(error));
  const code = HTTP_STATUS[fault.code] ?? 500;
  const details =
    fault.retryDelaySeconds === undefined
      ? []
      : [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: `${fault.retryDelaySeconds}s` }];
  answerJson(response, code, { error: { code, message: fault.message, status: fault.code, details } });
}

function answerJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}
