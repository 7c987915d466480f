/**
 * Polls are answered before a server instance is built. Whatever comes, the answer is the SDK entry's: a differential
 * test against the entry itself, on the same engine, over good requests and bad ones.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler } from "@modelcontextprotocol/server";
import { asyncFunction } from "@taskferry/function";
import { beforeAll, describe, expect, test } from "vitest";
import { createTaskEngine, defineWorkflow, LOCAL_OWNER, serveHttp, type TaskEngine } from "../src/index.js";
import { makeServer } from "../src/server/make-server.js";
import { sqliteStore } from "../src/store/sqlite.js";

const INFO = { name: "polls", version: "1.2.3" };
const EXTENSION = { "io.modelcontextprotocol/tasks": {} };
const META = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "client", version: "0" },
  "io.modelcontextprotocol/clientCapabilities": { extensions: EXTENSION },
};

interface Exchange {
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: unknown;
}

let engine: TaskEngine;
let ours: string;
let entry: string;
let working: string;
let ended: string;

beforeAll(async () => {
  engine = await createTaskEngine({
    store: await sqliteStore({ path: ":memory:" }),
    limits: { getPerMinute: 1e9 },
    workflows: [
      defineWorkflow({
        name: "waits",
        // Never read again while the test runs: both servers must see the same row.
        pollMs: 3_600_000,
        adapter: asyncFunction(
          (_input: unknown, { signal }) =>
            new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
        ),
      }),
      defineWorkflow({ name: "ends", pollMs: 10, adapter: asyncFunction(async () => ({ answer: 42 })) }),
    ],
  });
  const server = await serveHttp(engine, INFO);
  const handler = createMcpHandler((context) =>
    makeServer(engine, INFO, { context }).then((made) => made.server),
  );
  const bare = createServer(toNodeHandler(handler) as Parameters<typeof createServer>[1]);
  await new Promise<void>((resolve) => bare.listen(0, "127.0.0.1", resolve));
  ours = server.url;
  entry = `http://127.0.0.1:${(bare.address() as AddressInfo).port}/mcp`;
  const create = async (workflow: string) =>
    (await engine.create({ owner: LOCAL_OWNER, generation: "2026-07-28", workflow, arguments: {} })).task
      .taskId;
  working = await create("waits");
  await engine.get(LOCAL_OWNER, working);
  ended = await create("ends");
  await engine.wait(LOCAL_OWNER, ended, () => false, { timeoutMs: 5_000 });
  return async () => {
    await server.close();
    bare.closeAllConnections();
    bare.close();
    await engine.close();
  };
});

function good(taskId: string, id: unknown = 1): Exchange {
  return {
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": "tasks/get",
      "mcp-name": taskId,
    },
    body: { jsonrpc: "2.0", id, method: "tasks/get", params: { taskId, _meta: META } },
  };
}

async function send(url: string, { headers, body }: Exchange) {
  const given = Object.entries(headers).filter((entry): entry is [string, string] => entry[1] !== undefined);
  const response = await fetch(url, {
    method: "POST",
    headers: Object.fromEntries(given),
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  const text = await response.text();
  const type = response.headers.get("content-type")?.split(";")[0];
  return { status: response.status, type, body: text.startsWith("{") ? JSON.parse(text) : text };
}

function withHeaders(exchange: Exchange, headers: Exchange["headers"]): Exchange {
  return { ...exchange, headers: { ...exchange.headers, ...headers } };
}

// biome-ignore lint/suspicious/noExplicitAny: bodies are made wrong on purpose
function withBody(exchange: Exchange, change: (body: any) => unknown): Exchange {
  return { ...exchange, body: change(structuredClone(exchange.body)) };
}

const withMeta = (meta: object | undefined) => (base: Exchange) =>
  withBody(base, (body) => ({ ...body, params: { ...body.params, _meta: meta } }));
const withoutMeta = (key: string) =>
  withMeta(Object.fromEntries(Object.entries(META).filter(([name]) => !name.endsWith(key))));

/** What is done to a good poll. */
const CORPUS: Readonly<Record<string, (base: Exchange) => Exchange>> = {
  nothing: (base) => base,
  "a string id": (base) => withBody(base, (body) => ({ ...body, id: "abc" })),
  "a negative id": (base) => withBody(base, (body) => ({ ...body, id: -7 })),
  "a fractional id": (base) => withBody(base, (body) => ({ ...body, id: 1.5 })),
  "a null id": (base) => withBody(base, (body) => ({ ...body, id: null })),
  "an object id": (base) => withBody(base, (body) => ({ ...body, id: {} })),
  "no id": (base) => withBody(base, ({ id: _id, ...body }) => body),
  "another JSON-RPC": (base) => withBody(base, (body) => ({ ...body, jsonrpc: "1.0" })),
  "an unknown member": (base) => withBody(base, (body) => ({ ...body, extra: 1 })),
  "an unknown param": (base) => withBody(base, (body) => ({ ...body, params: { ...body.params, extra: 1 } })),
  "no params": (base) => withBody(base, ({ params: _params, ...body }) => body),
  "params that are a list": (base) => withBody(base, (body) => ({ ...body, params: [] })),
  "no task id": (base) => withBody(base, (body) => ({ ...body, params: { _meta: META } })),
  "a task id that is a number": (base) =>
    withBody(base, (body) => ({ ...body, params: { ...body.params, taskId: 5 } })),
  "an empty task id": (base) =>
    withHeaders(
      withBody(base, (body) => ({ ...body, params: { ...body.params, taskId: "" } })),
      { "mcp-name": "" },
    ),
  "a huge task id": (base) =>
    withHeaders(
      withBody(base, (body) => ({ ...body, params: { ...body.params, taskId: "x".repeat(5000) } })),
      {
        "mcp-name": "x".repeat(5000),
      },
    ),
  "an unknown task": (base) =>
    withHeaders(
      withBody(base, (body) => ({ ...body, params: { ...body.params, taskId: "nobody" } })),
      { "mcp-name": "nobody" },
    ),
  "no name header": (base) => withHeaders(base, { "mcp-name": undefined }),
  "another name header": (base) => withHeaders(base, { "mcp-name": "other" }),
  "a name header with spaces around": (base) =>
    withHeaders(base, { "mcp-name": ` ${base.headers["mcp-name"]} ` }),
  "an encoded name header": (base) =>
    withHeaders(base, {
      "mcp-name": `=?base64?${Buffer.from(base.headers["mcp-name"] ?? "").toString("base64")}?=`,
    }),
  "a badly encoded name header": (base) => withHeaders(base, { "mcp-name": "=?base64?!!!?=" }),
  "no method header": (base) => withHeaders(base, { "mcp-method": undefined }),
  "another method header": (base) => withHeaders(base, { "mcp-method": "tasks/cancel" }),
  "a method header in capitals": (base) => withHeaders(base, { "mcp-method": "TASKS/GET" }),
  "no version header": (base) => withHeaders(base, { "mcp-protocol-version": undefined }),
  "another version header": (base) => withHeaders(base, { "mcp-protocol-version": "2025-11-25" }),
  "a version header of nowhere": (base) => withHeaders(base, { "mcp-protocol-version": "1999-01-01" }),
  "only JSON accepted": (base) => withHeaders(base, { accept: "application/json" }),
  "only streams accepted": (base) => withHeaders(base, { accept: "text/event-stream" }),
  "pictures accepted": (base) => withHeaders(base, { accept: "image/png" }),
  "a charset": (base) => withHeaders(base, { "content-type": "application/json; charset=utf-8" }),
  "plain text": (base) => withHeaders(base, { "content-type": "text/plain" }),
  "nearly JSON": (base) => withHeaders(base, { "content-type": "application/jsonp" }),
  "no meta": (base) => withBody(base, (body) => ({ ...body, params: { taskId: body.params.taskId } })),
  "an empty meta": withMeta({}),
  "no version in the envelope": withoutMeta("protocolVersion"),
  "no client in the envelope": withoutMeta("clientInfo"),
  "no capabilities in the envelope": withoutMeta("clientCapabilities"),
  "a version of nowhere in the envelope": withMeta({
    ...META,
    "io.modelcontextprotocol/protocolVersion": "1999-01-01",
  }),
  "a client that is a string": withMeta({ ...META, "io.modelcontextprotocol/clientInfo": "me" }),
  "capabilities without the extension": withMeta({
    ...META,
    "io.modelcontextprotocol/clientCapabilities": {},
  }),
  "an extension that is not an object": withMeta({
    ...META,
    "io.modelcontextprotocol/clientCapabilities": { extensions: { "io.modelcontextprotocol/tasks": true } },
  }),
  "an unknown meta": withMeta({ ...META, "example.com/trace": "abc", traceparent: "00-1-2-03" }),
  "another method in the body": (base) => withBody(base, (body) => ({ ...body, method: "tasks/got" })),
  "a batch": (base) => withBody(base, (body) => [body]),
  "no JSON": (base) => withBody(base, () => "{"),
  "an empty body": (base) => withBody(base, () => ""),
  "a number": (base) => withBody(base, () => 5),
};

describe("a 2026-07-28 poll is answered as the entry answers it", () => {
  test.each(Object.keys(CORPUS))("%s", async (name) => {
    for (const taskId of [working, ended]) {
      // Learned: from here on the good form is answered without the entry.
      await send(ours, good(taskId));
      const exchange = CORPUS[name]?.(good(taskId)) as Exchange;
      const expected = await send(entry, exchange);
      // Twice: what the first answer taught must not change the second.
      expect(await send(ours, exchange)).toEqual(expected);
      expect(await send(ours, exchange)).toEqual(expected);
    }
  });
});

describe("a 2025-era poll", () => {
  const poll = (taskId: string, headers: Exchange["headers"] = {}): Exchange => ({
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...headers,
    },
    body: { jsonrpc: "2.0", id: 1, method: "tasks/get", params: { taskId } },
  });

  /** The one message of an answer, whatever it came in. */
  const message = ({ body }: Awaited<ReturnType<typeof send>>) =>
    typeof body === "string"
      ? JSON.parse(
          body
            .split("\n")
            .find((line) => line.startsWith("data:"))
            ?.slice(5) ?? "{}",
        )
      : body;

  test("is answered with JSON, and says what the SDK's stream would have said", async () => {
    for (const exchange of [
      poll(working),
      poll(ended),
      poll("nobody"),
      poll(working, { "mcp-protocol-version": "2025-06-18" }),
    ]) {
      const answer = await send(ours, exchange);
      expect(answer).toMatchObject({ status: 200, type: "application/json" });
      expect(answer.body).toEqual(message(await send(entry, exchange)));
    }
  });

  test("is refused as the SDK refuses it", async () => {
    for (const headers of [{ accept: "application/json" }, { "mcp-protocol-version": "1999-01-01" }]) {
      const exchange = poll(working, headers);
      expect(await send(ours, exchange)).toEqual(await send(entry, exchange));
    }
  });

  test("of a session that is not there is not found", async () => {
    const answer = await send(ours, poll(working, { "mcp-session-id": "nothing" }));
    expect(answer.status).toBe(404);
  });
});
