import type { ReadRequest, RunRef, RunState } from "@taskferry/core";
import { OAuth2Client } from "google-auth-library";
import type { Cloud } from "../emulator/src/cloud.js";
import { type ProtocolServer, startProtocolServer } from "../emulator/src/protocol-server.js";
import { type GoogleWorkflowsAdapter, type GoogleWorkflowsOptions, googleWorkflows } from "../src/index.js";

export const PROJECT = "demo-project";
export const LOCATION = "us-central1";
export const TRANSPORTS = ["gRPC", "REST"] as const;
export type Transport = (typeof TRANSPORTS)[number];

export interface Harness {
  readonly server: ProtocolServer;
  readonly cloud: Cloud;
  /** A new adapter, as a new process would make it. */
  adapter(options?: Partial<GoogleWorkflowsOptions>): GoogleWorkflowsAdapter;
  close(): Promise<void>;
}

/** A protocol server, and adapters whose real Google client talks to it over one of the transports. */
export async function harness(transport: Transport): Promise<Harness> {
  const server = await startProtocolServer();
  const adapters: GoogleWorkflowsAdapter[] = [];
  return {
    server,
    cloud: server.cloud,
    adapter(options = {}) {
      const adapter = googleWorkflows({
        project: PROJECT,
        location: LOCATION,
        workflow: "orders",
        apiEndpoint: server.grpcEndpoint,
        restEndpoint: server.restEndpoint,
        fallback: transport === "REST",
        insecure: true,
        auth: bearer("test-token"),
        ...options,
      });
      adapters.push(adapter);
      return adapter;
    },
    async close() {
      await Promise.all(adapters.map((adapter) => adapter.close?.()));
      await server.close();
    },
  };
}

/** Credentials that hold a token which never ends. */
export function bearer(token: string): OAuth2Client {
  const client = new OAuth2Client();
  client.setCredentials({ access_token: token, expiry_date: Date.now() + 3_600_000 });
  return client;
}

export const signal = (): AbortSignal => new AbortController().signal;

let keys = 0;
/** A start key, as core makes them: 26 characters of `[a-z0-9]`. */
export function newKey(): string {
  keys += 1;
  return `k${keys}`.padEnd(26, "0");
}

export function readRequest(fields: Partial<ReadRequest> = {}): ReadRequest {
  return { key: "k".padEnd(26, "0"), ageMs: 0, signal: signal(), isClaimed: async () => false, ...fields };
}

/** Reads until the condition holds, as core does, without a pause. */
export async function readUntil(
  adapter: GoogleWorkflowsAdapter,
  ref: RunRef,
  condition: (state: RunState) => boolean,
): Promise<RunState> {
  for (;;) {
    const state = await adapter.read(ref, readRequest());
    if (condition(state)) return state;
  }
}
