/** What Pub/Sub pushes when a log sink sends it Google's log of execution states: entries, and the tokens that prove them. */
import { createSign, generateKeyPairSync, type KeyObject } from "node:crypto";
import type { CloudExecution } from "./cloud.js";

/** The two ends of a push subscription's token. */
export interface Subscription {
  readonly audience: string;
  readonly serviceAccountEmail: string;
}

export interface SigningKey {
  readonly kid: string;
  readonly privateKey: KeyObject;
  /** PEM: what Google publishes under `kid`. */
  readonly certificate: string;
}

export interface PushDelivery {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export function newSigningKey(kid = "k1"): SigningKey {
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  return { kid, privateKey, certificate: publicKey.export({ type: "spki", format: "pem" }).toString() };
}

/** An OpenID Connect token as push subscriptions send it; `claims` replaces what is in it. */
export function pushToken(
  { kid, privateKey }: Pick<SigningKey, "kid" | "privateKey">,
  { audience, serviceAccountEmail }: Subscription,
  claims: Readonly<Record<string, unknown>> = {},
): string {
  const now = Math.floor(Date.now() / 1000);
  const payload = {
    iss: "https://accounts.google.com",
    aud: audience,
    email: serviceAccountEmail,
    email_verified: true,
    sub: "1",
    iat: now,
    exp: now + 3600,
    ...claims,
  };
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const signed = `${part({ alg: "RS256", typ: "JWT", kid })}.${part(payload)}`;
  return `${signed}.${createSign("RSA-SHA256").update(signed).sign(privateKey, "base64url")}`;
}

/**
 * The entry that Google writes when an execution changes its state.
 * @see https://cloud.google.com/workflows/docs/log-workflow#execution-logs
 */
export function stateEntry(
  project: string,
  location: string,
  { id, workflow, state, revision }: Pick<CloudExecution, "id" | "workflow" | "state" | "revision">,
): Record<string, unknown> {
  return {
    insertId: "1",
    // The log's id is URL-encoded in its name.
    logName: `projects/${project}/logs/workflows.googleapis.com%2Fexecutions_system`,
    resource: {
      type: "workflows.googleapis.com/Workflow",
      labels: { project_id: project, location, workflow_id: workflow },
    },
    labels: {
      "workflows.googleapis.com/execution_id": id,
      "workflows.googleapis.com/revision_id": revision,
    },
    jsonPayload: {
      "@type": "type.googleapis.com/google.cloud.workflows.type.ExecutionsSystemLog",
      state,
    },
    severity: "INFO",
  };
}

/** The request's body around an entry. */
export function pushBody(entry: unknown, subscription = "projects/demo-project/subscriptions/taskferry") {
  const data = Buffer.from(JSON.stringify(entry)).toString("base64");
  return { message: { data, messageId: "1" }, subscription };
}

/** A whole delivery. */
export function pushDelivery(key: SigningKey, subscription: Subscription, entry: unknown): PushDelivery {
  return {
    headers: {
      "content-type": "application/json",
      authorization: `Bearer ${pushToken(key, subscription)}`,
    },
    body: JSON.stringify(pushBody(entry)),
  };
}
