import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { OAuth2Client } from "google-auth-library";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { newSigningKey, pushBody as push, pushToken, stateEntry } from "../emulator/src/push.js";
import type { PushOptions } from "../src/index.js";
import { type Harness, harness, LOCATION, newKey, PROJECT, signal } from "./harness.js";

const SUBSCRIPTION = {
  audience: "https://mcp.example/events",
  serviceAccountEmail: "pusher@demo-project.iam.gserviceaccount.com",
};

/** One key pair for all tests: making it is the slow part. */
const google = newSigningKey();

function token(
  claims: Readonly<Record<string, unknown>> = {},
  { key = google.privateKey, kid = google.kid }: { key?: KeyObject; kid?: string } = {},
): string {
  return pushToken({ kid, privateKey: key }, SUBSCRIPTION, claims);
}

function entry(fields: Record<string, unknown> = {}, labels: Record<string, string> = {}) {
  const execution = { id: "e-1", workflow: "orders", state: "SUCCEEDED", revision: "000001-27f" };
  const { resource, ...written } = stateEntry(PROJECT, LOCATION, execution) as {
    resource: { labels: Record<string, string> };
  };
  return { ...written, resource: { ...resource, labels: { ...resource.labels, ...labels } }, ...fields };
}

describe("push deliveries", () => {
  let h: Harness;
  beforeEach(async () => {
    h = await harness("gRPC");
    h.server.certificates[google.kid] = google.certificate;
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
      push: { ...SUBSCRIPTION, verifier, ...options },
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

  test("an entry about another workflow of the project names that one: a subscription serves all of them", async () => {
    expect(await deliver(push(entry({}, { workflow_id: "others", location: "europe-west1" })))).toEqual([
      `projects/${PROJECT}/locations/europe-west1/workflows/others/executions/e-1`,
    ]);
  });

  test.each([
    ["another project", entry({}, { project_id: "other-project" })],
    ["another log", entry({ logName: `projects/${PROJECT}/logs/workflows.googleapis.com%2Fengine_call` })],
    ["a location that is none", entry({}, { location: "../x" })],
    ["a workflow without a name", entry({}, { workflow_id: "" })],
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
