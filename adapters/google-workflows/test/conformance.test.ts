/** The adapter contract, played by the kit against the protocol server over both transports, alone and behind a server. */
import { randomUUID } from "node:crypto";
import type { Json, JsonObject } from "@taskferry/core";
import {
  type CheckOptions,
  type Drive,
  type DrivenRun,
  type ReceivedAnswer,
  testAdapter,
  testServer,
} from "@taskferry/testkit";
import { OAuth2Client } from "google-auth-library";
import { type CloudCallback, type CloudExecution, CloudFault } from "../emulator/src/cloud.js";
import type { ProtocolServer } from "../emulator/src/protocol-server.js";
import { newSigningKey, pushDelivery, stateEntry } from "../emulator/src/push.js";
import { bearer, harness, LOCATION, PROJECT, TRANSPORTS, type Transport } from "./harness.js";

const TOKEN = "ya29.the-token-of-the-kit";
const SUBSCRIPTION = {
  audience: "https://mcp.example/events",
  serviceAccountEmail: "pusher@demo-project.iam.gserviceaccount.com",
};
const key = newSigningKey();
const answers = new WeakMap<CloudExecution, ReceivedAnswer[]>();

function executionOf({ cloud }: ProtocolServer, run: DrivenRun): CloudExecution {
  const execution = [...cloud.executions.values()].find(({ labels }) => labels["taskferry-id"] === run.key);
  if (execution === undefined) throw new Error("no such execution");
  return execution;
}

/** A step that waits for a call of its endpoint, and what a second endpoint tells about it. */
function ask(execution: CloudExecution): void {
  const received = answers.get(execution) ?? [];
  answers.set(execution, received);
  const waiting: CloudCallback = { id: randomUUID(), method: "POST", waiters: 1, payloads: [] };
  waiting.deliver = (payload) => {
    const { action, content } = JSON.parse(payload) as { action: string; content?: Json };
    received.push({ accepted: action === "accept", ...(content !== undefined && { content }) });
    waiting.waiters = 0;
    waiting.deliver = undefined;
  };
  const schema = { type: "object", properties: { reason: { type: "string" } } };
  const note = { taskferry: { callback: `https://x/callbacks/${waiting.id}`, message: "Pay?", schema } };
  const board = { id: randomUUID(), method: "POST", waiters: 0, payloads: [JSON.stringify(note)] };
  for (const callback of [waiting, board]) execution.callbacks.set(callback.id, callback);
}

function delivered(entry: Record<string, unknown>) {
  const { headers, body } = pushDelivery(key, SUBSCRIPTION, entry);
  return { headers, body: new TextEncoder().encode(body) };
}

function driveOver(transport: Transport): Drive<ProtocolServer> {
  return {
    runs: ({ cloud }) => cloud.executions.size,
    inputOf: (server, run) => JSON.parse(executionOf(server, run).argument) as Json,
    maxInputBytes: () => 32_768,
    secrets: () => [TOKEN],

    finish: (server, run, value) => server.cloud.succeed(executionOf(server, run).id, JSON.stringify(value)),
    fail: (server, run, { code, message }) =>
      server.cloud.fail(executionOf(server, run).id, {
        payload: JSON.stringify({ message, tags: [code] }),
      }),
    queue: ({ cloud }) => {
      cloud.slots = 0;
    },
    unknownWord: ({ cloud }, run) => {
      cloud.update(executionOf({ cloud } as ProtocolServer, run).id, {
        state: transport === "gRPC" ? 42 : "LEVITATING",
      });
      // Over REST the client itself takes a name that it does not know for the one that says nothing.
      return transport === "gRPC" ? "STATE_42" : "STATE_UNSPECIFIED";
    },
    vanish: (server, run) => void server.cloud.executions.delete(executionOf(server, run).id),
    deferStop: (server, run) => void server.cloud.goesOnAfterCancel.add(executionOf(server, run).id),

    ask: (server, run) => ask(executionOf(server, run)),
    withdraw: (server, run) => {
      for (const callback of executionOf(server, run).callbacks.values()) callback.waiters = 0;
    },
    answers: (server, run) => answers.get(executionOf(server, run)) ?? [],

    throttle: ({ cloud }, retryAfterMs) => {
      cloud.always = {
        kind: "refuse",
        fault: new CloudFault("RESOURCE_EXHAUSTED", "Quota exceeded", retryAfterMs / 1000),
      };
    },
    reject: ({ cloud }) => {
      const fault = (request: unknown) => new CloudFault("INVALID_ARGUMENT", JSON.stringify(request));
      cloud.inject("createExecution", { kind: "refuse", fault, times: 10 });
    },
    disconnect: ({ cloud }) => {
      cloud.always = { kind: "cut" };
    },
    hang: ({ cloud }) => {
      cloud.always = { kind: "holdAnswer" };
    },
    loseStartResponse: ({ cloud }) => cloud.inject("createExecution", { kind: "loseAnswer" }),

    event: (server, run) => delivered(stateEntry(PROJECT, LOCATION, executionOf(server, run))),
    foreignEvent: () =>
      delivered({
        logName: `projects/${PROJECT}/logs/cloudaudit.googleapis.com%2Factivity`,
        resource: { type: "audited_resource", labels: { project_id: PROJECT } },
      } satisfies JsonObject),
  };
}

for (const transport of TRANSPORTS) {
  const options: CheckOptions<ProtocolServer, never> = {
    create: async () => {
      const { server, adapter, close } = await harness(transport);
      server.cloud.deploy({ id: "orders", location: LOCATION });
      server.certificates[key.kid] = key.certificate;
      const endpoints = { oauth2FederatedSignonPemCertsUrl: `${server.restEndpoint}/oauth2/v1/certs` };
      return {
        engine: server,
        connect: () =>
          adapter({
            auth: bearer(TOKEN),
            questions: true,
            push: { ...SUBSCRIPTION, verifier: new OAuth2Client({ endpoints }) },
            // The lists of the protocol server never lag.
            find: { appearsWithinMs: 1 },
          }),
        close,
      };
    },
    drive: driveOver(transport),
  };
  testAdapter({
    ...options,
    name: `the adapter contract over ${transport}`,
    skip: [
      {
        drive: "progress",
        reason: "An execution tells the steps that it is at, and not how many there are.",
      },
      { drive: "revive", reason: "An execution that has ended never goes on: a retry is a new execution." },
      { drive: "omitStartId", reason: "The answer to a creation is the execution, with its name." },
      {
        id: "events.tampered",
        reason: "Pub/Sub's token proves who pushes, not what is pushed. A delivery only causes a read.",
      },
    ],
  });
  testServer({ ...options, name: `a server over ${transport}` });
}
