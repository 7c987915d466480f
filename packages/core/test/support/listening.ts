/** `subscriptions/listen` by hand, over HTTP and over stdio, in one shape: tests of it are the same for both. */
import { onTestFinished } from "vitest";
import type { TaskEngine } from "../../src/index.js";
import { type Json, modernRequest, type RpcReply, TASKS } from "./raw-client.js";
import { fixtureEngine, modern, modernPipe, overHttp, overStdio } from "./serving.js";

/** One open listen. */
export class Listen {
  readonly messages: Json[] = [];
  /** The HTTP status, where there is one. */
  status: number | undefined;
  ended = false;
  private readonly watchers = new Set<() => void>();

  constructor(
    readonly id: Json,
    readonly cancel: () => Promise<void> | void,
  ) {}

  push(message: Json): void {
    this.messages.push(message);
    this.wake();
  }

  end(): void {
    this.ended = true;
    this.wake();
  }

  async until<T>(find: () => T | undefined | false): Promise<T> {
    for (;;) {
      const found = find();
      if (found !== undefined && found !== false) return found;
      if (this.ended) throw new Error(`The stream has ended: ${JSON.stringify(this.messages)}`);
      await new Promise<void>((resolve) => this.watchers.add(resolve));
    }
  }

  /** The first note about a task that satisfies. */
  note(taskId: string, good: (task: Json) => boolean): Promise<Json> {
    return this.until(() =>
      this.messages.find(
        ({ method, params }) => method === "notifications/tasks" && params.taskId === taskId && good(params),
      ),
    );
  }

  private wake(): void {
    for (const wake of this.watchers) wake();
    this.watchers.clear();
  }
}

export interface Face {
  readonly engine: TaskEngine;
  readonly home: string;
  request(method: string, params?: Json, capabilities?: Json): Promise<RpcReply>;
  listen(notifications: Json, capabilities?: Json): Promise<Listen>;
  /** What an ordinary list change of the server is told by. */
  toolsChanged(): void;
  closeServer(): Promise<void>;
}

export async function httpFace(): Promise<Face> {
  const { engine, home } = await fixtureEngine();
  const server = await overHttp(engine);
  let ids = 0;
  return {
    engine,
    home,
    request: (method, params = {}, capabilities = TASKS) =>
      modernRequest(server.url, method, params, { capabilities, id: `r${++ids}` }),
    toolsChanged: () => server.notify.toolsChanged(),
    closeServer: () => server.close(),
    async listen(notifications, capabilities = TASKS) {
      const abort = new AbortController();
      const id = `listen-${++ids}`;
      const listen = new Listen(id, () => abort.abort());
      onTestFinished(() => abort.abort());
      const response = await fetch(server.url, {
        method: "POST",
        signal: abort.signal,
        headers: {
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
          "mcp-protocol-version": "2026-07-28",
          "mcp-method": "subscriptions/listen",
        },
        body: JSON.stringify({
          jsonrpc: "2.0",
          id,
          method: "subscriptions/listen",
          params: modern({ notifications }, capabilities),
        }),
      });
      listen.status = response.status;
      void pump(response, listen);
      return listen;
    },
  };
}

async function pump(response: Response, listen: Listen): Promise<void> {
  let rest = "";
  const isStream = response.headers.get("content-type")?.includes("text/event-stream") === true;
  try {
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream() as Json) as Json) {
      rest += chunk;
      if (!isStream) continue;
      const frames = rest.split("\n\n");
      rest = frames.pop() ?? "";
      for (const frame of frames) {
        const data = frame.split("\n").filter((line) => line.startsWith("data:"));
        if (data.length > 0) listen.push(JSON.parse(data.map((line) => line.slice(5)).join("\n")));
      }
    }
    if (!isStream) listen.push(JSON.parse(rest));
  } catch {
    // Cut off, by us or by the server.
  }
  listen.end();
}

export async function stdioFace(): Promise<Face> {
  const { engine, home } = await fixtureEngine();
  const { server, transport, mcpServers } = overStdio(engine);
  const client = await modernPipe(transport);
  const listens = new Map<Json, Listen>();
  const deliver = transport.onmessage!;
  transport.onmessage = (message: Json, extra) => {
    const id = message.id ?? message.params?._meta?.["io.modelcontextprotocol/subscriptionId"];
    listens.get(id)?.push(message);
    return deliver(message, extra);
  };
  return {
    engine,
    home,
    request: (method, params = {}, capabilities = TASKS) =>
      client.request(method, modern(params, capabilities)),
    toolsChanged: () => mcpServers.at(-1)?.sendToolListChanged(),
    closeServer: () => server.close(),
    async listen(notifications, capabilities = TASKS) {
      const id = `listen-${listens.size}`;
      const cancel = () => client.notify("notifications/cancelled", modern({ requestId: id }, capabilities));
      const listen = new Listen(id, cancel);
      listens.set(id, listen);
      client.send("subscriptions/listen", modern({ notifications }, capabilities), id);
      return listen;
    },
  };
}
