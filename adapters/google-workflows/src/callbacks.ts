import { isJsonObject, type Json, type JsonObject } from "@taskferry/core";
import type { Connection } from "./connection.js";
import { parseJson } from "./execution.js";

/**
 * A callback endpoint that an execution has created.
 *
 * @see https://cloud.google.com/workflows/docs/reference/executions/rest/v1/projects.locations.workflows.executions.callbacks
 */
export interface Callback {
  /** Drawn anew by every `events.create_callback_endpoint`. */
  readonly id: string;
  /** As Google names it: `projects/…/executions/{execution}/callback/{id}`. */
  readonly name: string;
  /** The only HTTP method that the endpoint takes. */
  readonly method: string;
  /** How many steps wait for a call right now. */
  readonly waiters: number;
  /** What has been received and not been waited for. */
  readonly availablePayloads: readonly string[];
  /** Where to call, when the list says so itself (Google's does not; emulators may). */
  readonly url?: string;
}

/** More callbacks than one execution can reasonably have open. */
const MAX_PAGES = 20;

/** The execution's callback endpoints. REST only: the generated client does not know them. */
export async function listCallbacks(
  connection: Connection,
  execution: string,
  signal: AbortSignal,
): Promise<readonly Callback[]> {
  const callbacks: Callback[] = [];
  let pageToken = "";
  for (let page = 0; page < MAX_PAGES; page++) {
    const answer = await connection.rest({
      method: "GET",
      url: `${connection.executionsUrl}/v1/${execution}/callbacks`,
      query: { pageSize: "100", ...(pageToken !== "" && { pageToken }) },
      signal,
    });
    if (!isJsonObject(answer)) return callbacks;
    const listed = Array.isArray(answer["callbacks"]) ? answer["callbacks"] : [];
    callbacks.push(...listed.map(parseCallback).filter((callback) => callback !== undefined));
    pageToken = typeof answer["nextPageToken"] === "string" ? answer["nextPageToken"] : "";
    if (pageToken === "") break;
  }
  return callbacks;
}

/**
 * Where a callback is called: the documented `sendHttpCallback` path. The list names the resource with `/callback/`,
 * the endpoint's path has `/callbacks/`.
 *
 * @see https://cloud.google.com/workflows/docs/reference/executions/rest/v1/projects.locations.workflows.executions.callbacks/sendHttpCallback
 */
export function callbackUrl(connection: Connection, execution: string, callback: Callback): string {
  return `${connection.executionsUrl}/v1/${execution}/callbacks/${encodeURIComponent(callback.id)}`;
}

/** Calls an endpoint with its own method. Methods without a body carry the payload's fields in the query. */
export async function sendCallback(
  connection: Connection,
  { url, method, payload, signal }: { url: string; method: string; payload: JsonObject; signal: AbortSignal },
): Promise<void> {
  const inBody = method === "POST" || method === "PUT" || method === "PATCH";
  await connection.rest({
    method,
    url,
    signal,
    ...(inBody ? { body: payload } : { query: flatQuery(payload) }),
  });
}

/** The JSON that was posted to an endpoint; the service may hand it on bare or inside the request that carried it. */
export function payloadBody(payload: string): Json | undefined {
  const received = parseJson(payload);
  if (!isJsonObject(received)) return received;
  const request = isJsonObject(received["http_request"]) ? received["http_request"] : received;
  const body = request["body"];
  return body === undefined ? received : typeof body === "string" ? (parseJson(body) ?? body) : body;
}

function parseCallback(value: unknown): Callback | undefined {
  if (!isJsonObject(value) || typeof value["name"] !== "string") return undefined;
  const id = value["name"].split("/").at(-1) ?? "";
  if (id === "") return undefined;
  const { method, waiters, availablePayloads: payloads, url } = value;
  return {
    id,
    name: value["name"],
    method: typeof method === "string" ? method.toUpperCase() : "POST",
    // A 64-bit integer, so a string; absent means none.
    waiters: Number(waiters ?? 0) || 0,
    availablePayloads: Array.isArray(payloads)
      ? payloads.filter((payload) => typeof payload === "string")
      : [],
    ...(typeof url === "string" && { url }),
  };
}

function flatQuery(payload: JsonObject): Record<string, string> {
  const query: Record<string, string> = {};
  for (const [name, value] of Object.entries(payload)) {
    if (isJsonObject(value)) Object.assign(query, flatQuery(value));
    else query[name] = typeof value === "string" ? value : JSON.stringify(value);
  }
  return query;
}
