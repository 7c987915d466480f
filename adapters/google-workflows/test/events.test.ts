import { createSign, generateKeyPairSync, type KeyObject } from "node:crypto";
import { OAuth2Client } from "google-auth-library";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { EXECUTIONS_LOG, type PushOptions } from "../src/index.js";
import { type Harness, harness, LOCATION, newKey, PROJECT, signal } from "./harness.js";

const AUDIENCE = "https://mcp.example/events";
const ACCOUNT = "pusher@demo-project.iam.gserviceaccount.com";

/** One key pair for all tests: making it is the slow part. */
const google = generateKeyPairSync("rsa", { modulusLength: 2048 });

interface Claims {
  [claim: string]: unknown;
}

function token(
  claims: Claims = {},
  { key = google.privateKey, kid = "k1" }: { key?: KeyObject; kid?: string } = {},
): string {
  const now = Math.floor(Date.now() / 1000);
  const payload = {
    iss: "https://accounts.google.com",
    aud: AUDIENCE,
    email: ACCOUNT,
    email_verified: true,
    sub: "1",
    iat: now,
    exp: now + 3600,
    ...claims,
  };
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const signed = `${part({ alg: "RS256", typ: "JWT", kid })}.${part(payload)}`;
  return `${signed}.${createSign("RSA-SHA256").update(signed).sign(key, "base64url")}`;
}

function entry(fields: Record<string, unknown> = {}, labels: Record<string, string> = {}) {
  return {
    insertId: "1",
    logName: `projects/${PROJECT}/logs/${encodeURIComponent(EXECUTIONS_LOG)}`,
    resource: {
      type: "workflows.googleapis.com/Workflow",
      labels: { project_id: PROJECT, location: LOCATION, workflow_id: "orders", ...labels },
    },
    labels: {
      "workflows.googleapis.com/execution_id": "e-1",
      "workflows.googleapis.com/revision_id": "000001-27f",
    },
    jsonPayload: {
      "@type": "type.googleapis.com/google.cloud.workflows.type.ExecutionsSystemLog",
      state: "SUCCEEDED",
    },
    severity: "INFO",
    ...fields,
  };
}

const push = (of: unknown) => ({
  message: { data: Buffer.from(JSON.stringify(of)).toString("base64"), messageId: "1" },
  subscription: "projects/demo-project/subscriptions/taskferry",
});

describe("push deliveries", () => {
  let h: Harness;
  beforeEach(async () => {
    h = await harness("gRPC");
    h.server.certificates["k1"] = google.publicKey.export({ type: "spki", format: "pem" }).toString();
  });
  afterEach(() => h.close());

  const deliver = (
    body: unknown,
    bearer: string | undefined = token(),
    options: Partial<PushOptions> = {},
  ) => {
    // Google's real verifier, fetching certificates from this machine.
    const endpoints = { oauth2FederatedSignonPemCertsUrl: `${h.server.restEndpoint}/oauth2/v1/certs` };
    const verifier = new OAuth2Client({ endpoints });
    const adapter = h.adapter({
      push: { audience: AUDIENCE, serviceAccountEmail: ACCOUNT, verifier, ...options },
    });
    return adapter.events?.({
      headers: bearer === "" ? {} : { authorization: `Bearer ${bearer}` },
      body: Buffer.from(typeof body === "string" ? body : JSON.stringify(body)),
      signal: signal(),
    });
  };
  const REF = `projects/${PROJECT}/locations/${LOCATION}/workflows/orders/executions/e-1`;

  test("names the execution that a log entry is about, wrapped by Pub/Sub or bare", async () => {
    expect(await deliver(push(entry()))).toEqual([REF]);
    expect(await deliver(entry())).toEqual([REF]);
  });

  test("the reference equals the one that start gave", async () => {
    h.cloud.deploy({ id: "orders", location: LOCATION });
    const { ref } = await h.adapter().start({ key: newKey(), input: {}, retry: false, signal: signal() });
    const labels = { "workflows.googleapis.com/execution_id": String(ref).split("/").at(-1) ?? "" };
    expect(await deliver(push(entry({ labels })))).toEqual([ref]);
  });

  test.each([
    ["another workflow", entry({}, { workflow_id: "others" })],
    ["another location", entry({}, { location: "europe-west1" })],
    ["another project", entry({}, { project_id: "other-project" })],
    ["another log", entry({ logName: `projects/${PROJECT}/logs/workflows.googleapis.com%2Fengine_call` })],
    ["no execution", entry({ labels: {} })],
    ["an id that is none", entry({ labels: { "workflows.googleapis.com/execution_id": "../../x" } })],
    ["nothing known", {}],
  ])("an entry about %s is about nothing of ours", async (_what, of) => {
    expect(await deliver(push(of))).toEqual([]);
  });

  test("a message without data, and another subscription, are about nothing of ours", async () => {
    expect(await deliver({ message: { messageId: "1" }, subscription: "s" })).toEqual([]);
    expect(
      await deliver(push(entry()), token(), { subscription: "projects/demo-project/subscriptions/other" }),
    ).toEqual([]);
    const subscription = "projects/demo-project/subscriptions/taskferry";
    expect(await deliver(push(entry()), token(), { subscription })).toEqual([REF]);
  });

  test.each([
    ["no token", () => ""],
    ["another audience", () => token({ aud: "https://other.example" })],
    ["another issuer", () => token({ iss: "https://evil.example" })],
    ["another account", () => token({ email: "other@demo-project.iam.gserviceaccount.com" })],
    ["an unverified address", () => token({ email_verified: false })],
    ["an expired token", () => token({ iat: 1_000_000_000, exp: 1_000_003_600 })],
    ["another key", () => token({}, { key: generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey })],
    ["an unknown key id", () => token({}, { kid: "k2" })],
    [
      "a changed payload",
      () => token().replace(/\.[^.]+\./, `.${Buffer.from('{"aud":"x"}').toString("base64url")}.`),
    ],
    ["garbage", () => "abc"],
  ])("a delivery with %s is refused, without a word of the token", async (_what, make) => {
    const bearer = make();
    const error = await Promise.resolve(deliver(push(entry()), bearer)).then(
      () => undefined,
      (e: unknown) => e as Error,
    );
    expect(error).toMatchObject({ verdict: { kind: "rejected" } });
    expect(error?.cause).toBeUndefined();
    if (bearer !== "") expect(error?.message).not.toContain(bearer.slice(-20));
  });

  test("a body that is no JSON object is refused", async () => {
    await expect(deliver("not json")).rejects.toMatchObject({ verdict: { code: "MALFORMED" } });
    await expect(deliver("[]")).rejects.toMatchObject({ verdict: { code: "MALFORMED" } });
  });

  test("certificates that cannot be fetched mean later, not forged", async () => {
    const verifier = {
      verifyIdToken: async () => {
        throw new Error("Failed to retrieve verification certificates: connect ECONNREFUSED");
      },
    };
    await expect(deliver(push(entry()), token(), { verifier })).rejects.toMatchObject({
      verdict: { kind: "retry" },
    });
  });

  test("without the option there are no events", () => {
    expect(h.adapter().events).toBeUndefined();
  });
});
