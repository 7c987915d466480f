/** One SDK server instance with everything attached: what both ready-made servers are made of. */
import { type McpRequestContext, McpServer } from "@modelcontextprotocol/server";
import type { TaskEngine } from "../engine/engine.js";
import { type AttachOptions, attach } from "./attach.js";
import type { Connection } from "./connection.js";

/** What a ready-made server says of itself, and what it offers beside the workflows. */
export interface ServerInfo {
  readonly name: string;
  readonly version: string;
  readonly title?: string;
  /** Shown to the model by hosts. */
  readonly instructions?: string;
  /** Registers ordinary tools, resources and prompts beside the workflows. Called for every server instance. */
  readonly setup?: (server: McpServer, context: McpRequestContext) => void | Promise<void>;
}

export async function makeServer(
  engine: TaskEngine,
  { name, version, title, instructions, setup }: ServerInfo,
  options: AttachOptions & { readonly context: McpRequestContext },
): Promise<{ readonly server: McpServer; readonly connection: Connection }> {
  const info = { name, version, ...(title !== undefined && { title }) };
  const server = new McpServer(info, instructions === undefined ? {} : { instructions });
  await setup?.(server, options.context);
  return { server, connection: attach(server, engine, options) };
}
