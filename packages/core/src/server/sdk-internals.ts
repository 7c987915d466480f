/**
 * The one place that reaches behind the MCP SDK's public face. `setRequestHandler` checks what a `tools/call` handler
 * returns against the era's `CallToolResult`, which a task is not: it refuses one 2025-11-25 shape and adds a stray
 * `content: []` to the 2026-07-28 one. Raw handlers answer tasks as they are, and leave the handlers of the server's
 * ordinary tools in place to be called. A test fails when an SDK release moves what this relies on.
 */
import type { McpServer, ServerContext } from "@modelcontextprotocol/server";
import { WorkflowError } from "../contract/errors.js";
import type { JsonObject } from "../contract/json.js";

/** A JSON-RPC request as it came, less the envelope that the SDK lifts into the context. */
export interface RawRequest {
  readonly method: string;
  readonly params?: JsonObject;
}

/** Answers a request. An error with an integer `code` becomes a JSON-RPC error with it. */
export type RawHandler = (request: RawRequest, ctx: ServerContext) => Promise<JsonObject>;

/** The SDK server of an `McpServer`, as far as it is used. */
export type SdkServer = McpServer["server"];

/** @throws WorkflowError `configuration` if this SDK release is built otherwise */
export function rawHandlers(server: SdkServer): Map<string, RawHandler> {
  const handlers = (server as unknown as { _requestHandlers?: unknown })._requestHandlers;
  if (handlers instanceof Map) return handlers as Map<string, RawHandler>;
  throw new WorkflowError(
    "configuration",
    "This release of @modelcontextprotocol/server is not known to Taskferry: install ^2.4.0",
  );
}
