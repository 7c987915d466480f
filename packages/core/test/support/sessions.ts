/** 2025-era clients by hand over HTTP: in a session, and without one. */
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { onTestFinished } from "vitest";
import { type Json, RawClient, type RpcReply } from "./raw-client.js";

export const FORMS = { elicitation: { form: {} } };
export const DRAFT_TASK = "modelcontextprotocol.io/task";
export const DRAFT_RELATED = "modelcontextprotocol.io/related-task";
export const RELATED = "io.modelcontextprotocol/related-task";

/** A client in a session of its own. */
export async function session(
  url: string,
  capabilities: Json = FORMS,
  headers: Record<string, string> = {},
): Promise<RawClient> {
  const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
  const client = new RawClient(transport);
  onTestFinished(() => client.close());
  await client.initialize(capabilities);
  return client;
}

/** One request without a session. */
export async function stateless(
  url: string,
  method: string,
  params: Json = {},
  headers: Record<string, string> = {},
): Promise<RpcReply & { status: number }> {
  const response = await fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2025-11-25",
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  });
  const text = await response.text();
  const messages = text.startsWith("{")
    ? [JSON.parse(text)]
    : text
        .split("\n")
        .filter((line) => line.startsWith("data:"))
        .map((line) => JSON.parse(line.slice(5)));
  return {
    ...messages.find((message) => "result" in message || "error" in message),
    status: response.status,
  };
}

/** Starts a task as a client of 2025-11-25. @returns its id */
export async function start2025(client: RawClient, name: string, args: Json = {}): Promise<string> {
  const { result } = await client.request("tools/call", { name, arguments: args, task: {} });
  return result.task.taskId;
}

export const accept = (content: Json) => ({ action: "accept", content });
export const textOf = (result: Json): string =>
  result.content.map((block: Json) => block.text ?? "").join("\n");
