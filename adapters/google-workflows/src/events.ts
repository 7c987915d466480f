import { EngineError, type EventRequest, isJsonObject, type JsonObject } from "@taskferry/core";
import type { LoginTicket } from "google-auth-library";
import { parseJson } from "./execution.js";
import { decodePart, executionId, executionResource } from "./names.js";

/** What a push subscription must prove. */
export interface PushOptions {
  /** The `audience` of the push subscription's token. */
  readonly audience: string;
  /** The service account that the subscription signs with. */
  readonly serviceAccountEmail: string;
  /** The only subscription that is listened to, `projects/{project}/subscriptions/{subscription}`. @default any */
  readonly subscription?: string;
  /** Verifies the token. @default Google's published certificates */
  readonly verifier?: IdTokenVerifier;
}

/** What is needed of an `OAuth2Client`. */
export interface IdTokenVerifier {
  verifyIdToken(options: { idToken: string; audience: string }): Promise<Pick<LoginTicket, "getPayload">>;
}

/** The log that Google writes on every change of an execution's state. */
export const EXECUTIONS_LOG = "workflows.googleapis.com/executions_system";

/** Verifies a Pub/Sub push delivery of a log sink and names the executions that it is about. */
export async function executionsOf(
  { headers, body }: Pick<EventRequest, "headers" | "body">,
  project: string,
  options: PushOptions,
  verifier: IdTokenVerifier,
): Promise<readonly string[]> {
  await verify(headers["authorization"], options, verifier);
  const delivery = parseJson(Buffer.from(body).toString("utf8"));
  if (!isJsonObject(delivery)) throw refusal("MALFORMED", "The delivery is not a JSON object");
  const { message, subscription } = delivery;
  if (options.subscription !== undefined && subscription !== options.subscription) return [];
  const entry = isJsonObject(message) ? logEntry(message) : delivery;
  const execution = entry === undefined ? undefined : executionOf(entry, project);
  return execution === undefined ? [] : [execution];
}

async function verify(
  authorization: string | undefined,
  { audience, serviceAccountEmail }: PushOptions,
  verifier: IdTokenVerifier,
): Promise<void> {
  const idToken = /^Bearer (\S+)$/i.exec(authorization ?? "")?.[1];
  if (idToken === undefined) throw refusal("NO_TOKEN", "The delivery carries no bearer token");
  let ticket: Pick<LoginTicket, "getPayload">;
  try {
    ticket = await verifier.verifyIdToken({ idToken, audience });
  } catch (error) {
    if (error instanceof Error && error.message.startsWith("Failed to retrieve verification certificates")) {
      const message = "Google's certificates could not be fetched, so the delivery was not checked";
      throw new EngineError({ kind: "retry", code: "NO_CERTIFICATES", message });
    }
    // Without the cause: the library quotes the token.
    throw refusal("BAD_TOKEN", "The delivery's token is not valid");
  }
  const payload = ticket.getPayload();
  if (payload?.email_verified !== true || payload.email !== serviceAccountEmail) {
    throw refusal("WRONG_ACCOUNT", "The delivery is signed by another account");
  }
}

function refusal(code: string, message: string): EngineError {
  return new EngineError({ kind: "rejected", code, message });
}

/** The log entry inside a Pub/Sub message. A subscription with payload unwrapping sends the entry bare. */
function logEntry({ data }: JsonObject): JsonObject | undefined {
  const entry =
    typeof data === "string" ? parseJson(Buffer.from(data, "base64").toString("utf8")) : undefined;
  return isJsonObject(entry) ? entry : undefined;
}

/**
 * The execution that an entry is about, when it is one of this project's. It may be another workflow's: one subscription
 * then serves all workflows of a server, and what is nobody's run concerns nobody.
 */
function executionOf({ logName, resource, labels }: JsonObject, project: string): string | undefined {
  if (typeof logName !== "string" || !isJsonObject(resource) || !isJsonObject(labels)) return undefined;
  // The log's id is URL-encoded in its name.
  if (!decodePart(logName).endsWith(`/logs/${EXECUTIONS_LOG}`)) return undefined;
  const of = isJsonObject(resource["labels"]) ? resource["labels"] : {};
  const { project_id, location, workflow_id } = of;
  const id = labels["workflows.googleapis.com/execution_id"];
  if (project_id !== project || typeof location !== "string") return undefined;
  if (typeof workflow_id !== "string" || typeof id !== "string") return undefined;
  const name = executionResource({ project, location, workflow: workflow_id }, id);
  return executionId(name) === undefined ? undefined : name;
}
