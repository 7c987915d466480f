/** The adapter contract, played by the kit against the protocol server. */
import { createHmac } from "node:crypto";
import type { Json } from "@taskferry/core";
import { type Drive, type DrivenRun, testAdapter } from "@taskferry/testkit";
import { JSONStringify } from "json-with-bigint";
import { runObject } from "../emulator/src/protocol-objects.js";
import { ProtocolServer } from "../emulator/src/protocol-server.js";
import { latest, type RunRecord } from "../emulator/src/protocol-state.js";
import { githubActions } from "../src/index.js";
import { CI, TOKEN } from "./world.js";

/** A dispatch carries strings: the kit's payload travels as one. */
const WORKFLOW = `
run-name: CI \${{ inputs.taskferry_id }}
on: { workflow_dispatch: { inputs: { taskferry_id: {}, payload: {} } } }
`;
const SECRET = "webhook secret";
/** What `"taskferry_id":"…"` and a comma take of the 65,535 characters. */
const CORRELATION_CHARACTERS = 44;
const ALWAYS = { on: /./, times: Number.POSITIVE_INFINITY };

function runOf({ state }: ProtocolServer, { key }: DrivenRun): RunRecord {
  const run = state.runs.find(({ inputs }) => inputs["taskferry_id"] === key);
  if (run === undefined) throw new Error("no such run");
  return run;
}

function signed(event: string, payload: object) {
  const body = JSONStringify(payload);
  const signature = createHmac("sha256", SECRET).update(body).digest("hex");
  const headers = {
    "content-type": "application/json",
    "x-github-event": event,
    "x-hub-signature-256": `sha256=${signature}`,
  };
  return { headers, body: new TextEncoder().encode(body) };
}

const drive: Drive<ProtocolServer> = {
  input: (_, payload) => ({ payload: JSON.stringify(payload) }),
  runs: ({ state }) => state.runs.length,
  inputOf: (server, run) => JSON.parse(runOf(server, run).inputs["payload"] ?? "null") as Json,
  maxInputBytes: () => 65_535 - CORRELATION_CHARACTERS,
  secrets: () => [TOKEN, SECRET],

  finish: (server, run) => server.state.finish(runOf(server, run), "success"),
  fail: (server, run, { message }) => {
    server.state.addJob(runOf(server, run), {
      name: "job",
      conclusion: "failure",
      log: `##[error]${message}\n`,
    });
    server.state.finish(runOf(server, run), "failure");
  },
  // It is where every run begins.
  queue: () => {},
  progress: (server, run, done, total) => {
    server.state.set(runOf(server, run), "in_progress");
    for (let index = 0; index < total; index += 1) {
      server.state.addJob(runOf(server, run), {
        name: `job ${index}`,
        conclusion: index < done ? "success" : null,
      });
    }
  },
  // A job's log is there when the job has ended, so each line is a job.
  log: (server, run, line) => {
    const record = runOf(server, run);
    const endedAgoMs = 3_600_000 - latest(record).jobs.length * 1000;
    const completedAtMs = server.state.now() - endedAgoMs;
    server.state.addJob(record, { name: "job", conclusion: "success", log: `${line}\n`, completedAtMs });
  },
  unknownWord: (server, run) => {
    server.state.set(runOf(server, run), "levitating");
    return "levitating";
  },
  vanish: (server, run) => {
    runOf(server, run).visible = false;
  },
  revive: (server, run) => {
    server.state.addAttempt(runOf(server, run));
    server.state.set(runOf(server, run), "in_progress");
  },
  deferStop: ({ state }, { key }) => {
    state.cancelEnds = ({ inputs }) => inputs["taskferry_id"] !== key;
  },

  ask: (server, run) => {
    const record = runOf(server, run);
    server.state.set(record, "waiting");
    server.state.addPending(record, `environment ${record.pending.length + record.reviews.length}`);
  },
  withdraw: (server, run) => {
    runOf(server, run).pending = [];
  },
  answers: (server, run) =>
    runOf(server, run).reviews.map(({ state, comment }) => ({
      accepted: state === "approved",
      content: { decision: state === "approved" ? "approve" : "reject", comment },
    })),

  throttle: (server, retryAfterMs) =>
    server.fault({
      ...ALWAYS,
      does: {
        status: 429,
        body: { message: "slow down" },
        headers: { "retry-after": `${retryAfterMs / 1000}` },
      },
    }),
  reject: (server) =>
    server.fault({
      on: /dispatches/,
      times: Number.POSITIVE_INFINITY,
      does: (body) => ({
        status: 422,
        body: { message: `Provided value ${JSON.stringify(body)} is not allowed` },
      }),
    }),
  disconnect: (server) => server.fault({ ...ALWAYS, does: "cut-before" }),
  hang: (server) => server.fault({ ...ALWAYS, does: "hang" }),
  loseStartResponse: (server) => server.fault({ on: /dispatches/, does: "cut-after" }),
  omitStartId: (server) => {
    server.mode = "silent";
  },

  event: (server, run) => {
    const record = runOf(server, run);
    const workflow_run = runObject(server.url, record, latest(record));
    return signed("workflow_run", { workflow_run, repository: workflow_run["repository"] });
  },
  foreignEvent: () => signed("push", { ref: "refs/heads/main" }),
};

const NO_OUTPUTS = "GitHub has no API for a workflow's outputs: the value of a result is the run itself.";

testAdapter({
  create: async () => {
    const server = await ProtocolServer.start();
    server.state.repository("octo/hello", { files: { [CI]: WORKFLOW } });
    server.state.cancelEnds = () => true;
    return {
      engine: server,
      connect: () =>
        githubActions({
          baseUrl: server.url,
          auth: TOKEN,
          owner: "octo",
          repo: "hello",
          workflow: "ci.yml",
          webhookSecret: SECRET,
          // The server's lists never lag.
          appearsWithinMs: 1,
        }),
      close: () => server.close(),
    };
  },
  drive,
  skip: [
    { id: "read.output", reason: NO_OUTPUTS },
    { id: "payloads.output-text", reason: NO_OUTPUTS },
    { id: "payloads.large-output", reason: NO_OUTPUTS },
  ],
});
