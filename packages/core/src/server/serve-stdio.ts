/** A ready-made stdio server: one process, one host, both eras. */
import { type McpRequestContext, McpServer } from "@modelcontextprotocol/server";
import { StdioServerTransport, serveStdio as serveSdkStdio } from "@modelcontextprotocol/server/stdio";
import type { TaskEngine } from "../engine.js";
import { LOCAL_OWNER } from "../owner.js";
import { type AttachOptions, attach } from "./attach.js";
import { ListeningTransport } from "./listen-stdio.js";

/** What both ready-made servers are made of. */
export interface ServerInfo {
  readonly name: string;
  readonly version: string;
  readonly title?: string;
  /** Shown to the model by hosts. */
  readonly instructions?: string;
  /** Registers ordinary tools, resources and prompts beside the workflows. Called for every server instance. */
  readonly setup?: (server: McpServer, context: McpRequestContext) => void | Promise<void>;
}

export interface ServeStdioOptions extends ServerInfo, Pick<AttachOptions, "companions" | "inlineWaitMs"> {
  /** The largest message, in bytes; a host that sends more is told so and disconnected by the SDK. @default 67108864 */
  readonly maxMessageBytes?: number;
  readonly stdin?: NodeJS.ReadStream;
  readonly stdout?: NodeJS.WriteStream;
}

/** A server that runs. */
export interface StdioServer {
  /** Resolves when the host has closed its end. */
  readonly closed: Promise<void>;
  /** Ends the connection. The engine stays open: it is yours. */
  close(): Promise<void>;
}

/**
 * Serves an engine's workflows to the host that started this process, in every generation. Stdout carries the protocol
 * and nothing else. Tasks belong to the local user, so the next process finds them again.
 */
export function serveStdio(engine: TaskEngine, options: ServeStdioOptions): StdioServer {
  const pipe = new StdioServerTransport(options.stdin, options.stdout, {
    maxBufferSize: options.maxMessageBytes ?? 64 * 1024 * 1024,
  });
  const transport = new ListeningTransport(pipe, engine, LOCAL_OWNER);
  const handle = serveSdkStdio((context) => makeServer(engine, options, { ...options, context }), {
    transport,
    onerror: (error) => engine.log.warn({ error: error.name }, "stdio"),
  });
  const entryClosed = transport.onclose;
  const closed = new Promise<void>((resolve) => {
    transport.onclose = () => {
      entryClosed?.();
      resolve();
    };
  });
  return { closed, close: () => handle.close() };
}

/** One SDK server instance with everything attached. */
export async function makeServer(
  engine: TaskEngine,
  { name, version, title, instructions, setup }: ServerInfo,
  { context, ...attachOptions }: AttachOptions & { readonly context: McpRequestContext },
): Promise<McpServer> {
  const info = { name, version, ...(title !== undefined && { title }) };
  const server = new McpServer(info, instructions === undefined ? {} : { instructions });
  await setup?.(server, context);
  const { owner, companions, inlineWaitMs } = attachOptions;
  attach(server, engine, {
    context,
    ...(owner !== undefined && { owner }),
    ...(companions !== undefined && { companions }),
    ...(inlineWaitMs !== undefined && { inlineWaitMs }),
  });
  return server;
}
