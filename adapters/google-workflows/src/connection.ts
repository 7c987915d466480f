import type { ExecutionsClient } from "@google-cloud/workflows";
import type { AuthClient, GoogleAuth } from "google-auth-library";
import type { ClientOptions } from "google-gax";

/** What the adapter needs of an `ExecutionsClient`, so that your own configured one fits. */
export type ExecutionsApi = Pick<
  ExecutionsClient,
  "createExecution" | "getExecution" | "cancelExecution" | "listExecutions" | "close"
>;

/** What the adapter needs to call REST with a bearer token: a `GoogleAuth`, any `AuthClient`, or an `ExecutionsClient`'s `auth`. */
export type RestAuth = Pick<GoogleAuth, "request">;

/** How Google Cloud is reached. */
export interface ConnectionOptions {
  /** Your own client. It is not closed by the adapter. */
  readonly client?: ExecutionsApi;
  /** Credentials for REST calls. @default the `auth` of `client`, else what the options below say */
  readonly auth?: RestAuth;
  /** Service account credentials. @default Application Default Credentials */
  readonly credentials?: NonNullable<ClientOptions["credentials"]>;
  /** Path of a key or external-account file. @default Application Default Credentials */
  readonly keyFilename?: string;
  /** `true`: HTTP/1.1 with JSON instead of gRPC, e.g. behind a proxy that does not let gRPC through. @default false */
  readonly fallback?: boolean;
  /** `host[:port]` of the Workflow Executions API. @default "workflowexecutions.googleapis.com" */
  readonly apiEndpoint?: string;
  /** Base URL of REST calls to the Workflow Executions API. @default `https://` and `apiEndpoint` */
  readonly restEndpoint?: string;
  /** Base URL of the Workflows API, asked by discovery. @default "https://workflows.googleapis.com" */
  readonly workflowsEndpoint?: string;
  /** No TLS and no credentials: emulators only. @default false */
  readonly insecure?: boolean;
}

/** One request over REST. */
export interface RestRequest {
  readonly method: string;
  readonly url: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly signal: AbortSignal;
}

/** The clients, built when they are first needed. */
export interface Connection {
  executions(): Promise<ExecutionsApi>;
  /** Calls REST with a bearer token; resolves to the parsed body. */
  rest(request: RestRequest): Promise<unknown>;
  readonly executionsUrl: string;
  readonly workflowsUrl: string;
  close(): Promise<void>;
}

const SCOPE = "https://www.googleapis.com/auth/cloud-platform";

/** Remembers how to connect. Nothing is loaded, resolved or opened until the first call. */
export function connection(options: ConnectionOptions): Connection {
  const executionsUrl = baseUrl(
    options.restEndpoint ?? options.apiEndpoint ?? "workflowexecutions.googleapis.com",
    options,
  );
  const workflowsUrl = baseUrl(options.workflowsEndpoint ?? "workflows.googleapis.com", options);
  let client: Promise<ExecutionsApi> | undefined;
  let auth: Promise<RestAuth> | undefined;
  return {
    executionsUrl,
    workflowsUrl,
    executions() {
      client ??= openClient(options, executionsUrl).catch((error: unknown) => {
        // Credentials may be there next time (a metadata server that was not up yet).
        client = undefined;
        throw error;
      });
      return client;
    },
    async rest({ method, url, query, body, signal }) {
      signal.throwIfAborted();
      auth ??= openAuth(options);
      const response = await (await auth).request<unknown>({
        url: query === undefined ? url : `${url}?${new URLSearchParams(query)}`,
        method: method as "GET",
        // A string, because gaxios guesses at the meaning of other bodies.
        ...(body !== undefined && {
          data: JSON.stringify(body),
          headers: { "content-type": "application/json" },
        }),
        responseType: "json",
        // Core decides what is tried again and when.
        retry: false,
        signal,
      });
      return response.data;
    },
    async close() {
      const opened = client;
      client = undefined;
      if (options.client === undefined && opened !== undefined) await (await opened).close();
    },
  };
}

async function openClient(options: ConnectionOptions, restUrl: string): Promise<ExecutionsApi> {
  const client = options.client ?? (await newClient(options, restUrl));
  // The client's methods let a failed initialization go by as an unhandled rejection, which ends the process: wait for
  // it here, where it is an ordinary error.
  await (client as Partial<ExecutionsClient>).initialize?.();
  return client;
}

async function newClient(options: ConnectionOptions, restUrl: string): Promise<ExecutionsClient> {
  const [{ ExecutionsClient: Client }, gax] = await Promise.all([
    import("@google-cloud/workflows"),
    import("google-gax"),
  ]);
  const endpoint = new URL(
    options.fallback === true ? restUrl : baseUrl(options.apiEndpoint ?? restUrl, options),
  );
  const isDefault = options.apiEndpoint === undefined && options.restEndpoint === undefined;
  const port = endpoint.port !== "" ? Number(endpoint.port) : endpoint.protocol === "http:" ? 80 : 443;
  const clientOptions: ClientOptions & { protocol?: string } = {
    ...(!isDefault && { apiEndpoint: endpoint.hostname, port }),
    ...(options.fallback === true && { fallback: true, protocol: endpoint.protocol.slice(0, -1) }),
    ...(options.credentials && { credentials: options.credentials }),
    ...(options.keyFilename !== undefined && { keyFilename: options.keyFilename }),
    ...(options.insecure === true && {
      sslCreds: gax.grpc.credentials.createInsecure(),
      authClient: await noCredentials(),
      projectId: "emulator",
    }),
  };
  return new Client(clientOptions);
}

async function openAuth(options: ConnectionOptions): Promise<RestAuth> {
  if (options.auth !== undefined) return options.auth;
  const own = options.client as { readonly auth?: RestAuth } | undefined;
  if (own?.auth !== undefined) return own.auth;
  if (options.insecure === true) return noCredentials();
  const { GoogleAuth: Auth } = await import("google-auth-library");
  return new Auth({
    scopes: [SCOPE],
    ...(options.credentials && { credentials: options.credentials }),
    ...(options.keyFilename !== undefined && { keyFilename: options.keyFilename }),
  });
}

/** Ends the wait when core gives up: the generated client takes no signal. The call itself may still arrive. */
export function untilAborted<T>(call: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
    call.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

async function noCredentials(): Promise<AuthClient> {
  const { PassThroughClient } = await import("google-auth-library");
  return new PassThroughClient();
}

function baseUrl(endpoint: string, { insecure }: ConnectionOptions): string {
  const url = /^https?:\/\//.test(endpoint)
    ? endpoint
    : `${insecure === true ? "http" : "https"}://${endpoint}`;
  return url.replace(/\/+$/, "");
}
