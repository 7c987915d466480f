/** A ready-made stdio server: one process, one host, both eras. */
import type { McpRequestContext } from "@modelcontextprotocol/server";
import { StdioServerTransport, serveStdio as serveSdkStdio } from "@modelcontextprotocol/server/stdio";
import { LOCAL_OWNER } from "../contract/owner.js";
import type { TaskEngine } from "../engine/engine.js";
import type { AttachOptions } from "./attach.js";
import { ListeningTransport } from "./listen-stdio.js";
import { makeServer, type ServerInfo } from "./make-server.js";

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
  const { companions, inlineWaitMs } = options;
  const attachOptions = {
    ...(companions !== undefined && { companions }),
    ...(inlineWaitMs !== undefined && { inlineWaitMs }),
  };
  const serverFor = async (context: McpRequestContext) =>
    (await makeServer(engine, options, { ...attachOptions, context })).server;
  const handle = serveSdkStdio(serverFor, {
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
