/** The official 2026-07-28 requester: the v2 SDK client with @modelcontextprotocol/ext-tasks on top. */
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import {
  createApplicationInputHandler,
  createTaskSessionFromClient,
  type TaskEnabledSession,
} from "@modelcontextprotocol/ext-tasks/client";

const PROTOCOL_VERSION = "2026-07-28";
const CLIENT_INFO = { name: "modern-client", version: "0" };
const CAPABILITIES = { elicitation: { form: {} }, extensions: { "io.modelcontextprotocol/tasks": {} } };

/** Connects, and answers every question with `content`. */
export async function modernSession(
  url: string,
  content: Record<string, string>,
): Promise<TaskEnabledSession> {
  const client = new Client(CLIENT_INFO, {
    capabilities: CAPABILITIES,
    versionNegotiation: { mode: "auto" },
  });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  const refuse = () => {
    throw new Error("not offered");
  };
  const onInputRequest = createApplicationInputHandler({
    elicitation: () => ({ action: "accept", content }),
    sampling: refuse,
    roots: refuse,
  });
  return createTaskSessionFromClient(client, {
    endpointId: "quickstart",
    onInputRequest,
    rawDispatch: (request) => post(url, request),
    v2RequestFraming: {
      protocolVersion: PROTOCOL_VERSION,
      clientInfo: CLIENT_INFO,
      clientCapabilities: CAPABILITIES,
    },
  });
}

/** Sends one framed request: the SDK's own codec does not know task results. */
async function post(url: string, request: unknown): ReturnType<NonNullable<RawDispatch>> {
  const message = { jsonrpc: "2.0", id: crypto.randomUUID(), ...(request as unknown as Framed) };
  const { name, taskId } = message.params;
  const target = name ?? taskId;
  const response = await fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": PROTOCOL_VERSION,
      "mcp-method": message.method,
      ...(target !== undefined && { "mcp-name": target }),
    },
    body: JSON.stringify(message),
  });
  const text = await response.text();
  const data = text.startsWith("{")
    ? text
    : text
        .split("\n")
        .filter((line) => line.startsWith("data:"))
        .at(-1)
        ?.slice(5);
  const reply = JSON.parse(data ?? "{}");
  return "error" in reply ? { kind: "error", error: reply.error } : { kind: "result", result: reply.result };
}

type RawDispatch = Parameters<typeof createTaskSessionFromClient>[1]["rawDispatch"];

interface Framed {
  readonly method: string;
  readonly params: { readonly name?: string; readonly taskId?: string };
}
