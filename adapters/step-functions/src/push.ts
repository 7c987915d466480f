import { createHash, timingSafeEqual } from "node:crypto";
import { EngineError, type EventRequest, isJsonObject, type Json } from "@taskferry/core";
import { parseJson } from "./outcome.js";

/** How deliveries of EventBridge are told from forgeries. One of the two. */
export type PushOptions =
  /** An HTTP target (API destination) sends this secret in a header, by its connection's API key. */
  | { readonly secret: string /** @default "x-taskferry-secret" */; readonly header?: string }
  /** Whoever calls `events` has read the delivery from a queue of its own: IAM has checked it. */
  | { readonly trusted: true };

const DETAIL_TYPE = "Step Functions Execution Status Change";
const ENVELOPES = ["Records", "Messages", "body", "Body", "Message"];

/**
 * The executions that a delivery is about: an EventBridge event itself, or messages of SQS or SNS around such events.
 * @throws EngineError `rejected` when the secret is wrong
 * @see https://docs.aws.amazon.com/step-functions/latest/dg/eventbridge-integration.html
 */
export function executionsIn({ headers, body }: EventRequest, push: PushOptions): string[] {
  if (
    "secret" in push &&
    !isEqual(headers[(push.header ?? "x-taskferry-secret").toLowerCase()] ?? "", push.secret)
  ) {
    throw new EngineError({
      kind: "rejected",
      code: "NotAuthentic",
      message: "The event delivery is not authentic.",
    });
  }
  return [...new Set(eventsIn(parseJson(Buffer.from(body).toString("utf8"))))];
}

function* eventsIn(value: Json): Generator<string> {
  const inner = typeof value === "string" ? parseJson(value) : value;
  if (Array.isArray(inner)) for (const item of inner) yield* eventsIn(item as Json);
  if (!isJsonObject(inner)) return;
  if (inner.source === "aws.states" && inner["detail-type"] === DETAIL_TYPE && isJsonObject(inner.detail)) {
    const { executionArn } = inner.detail;
    if (typeof executionArn === "string") yield executionArn;
    return;
  }
  for (const name of ENVELOPES) if (inner[name] !== undefined) yield* eventsIn(inner[name]);
}

function isEqual(given: string, secret: string): boolean {
  // Of equal length whatever was given, as the comparison wants it.
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return secret !== "" && timingSafeEqual(digest(given), digest(secret));
}
