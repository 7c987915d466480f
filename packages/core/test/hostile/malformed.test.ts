/** What no honest client sends, over HTTP and stdio: the right error, a message that helps, and a server that goes on. */

import { mkdtemp, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createTaskEngine, type HttpServer, serveHttp, type TaskEngine } from "../../src/index.js";
import { sqliteStore } from "../../src/store/sqlite.js";
import { rawClient } from "../support/clients.js";
import { fixtureWorkflows } from "../support/fixture-workflows.mjs";
import { type Json, TASKS } from "../support/raw-client.js";
import { modern, modernPipe, overHttp, overStdio } from "../support/serving.js";
import { stateless } from "../support/sessions.js";

const SECRET = "hunter2-the-planted-secret";
const DRAFT_TASK = "modelcontextprotocol.io/task";
const HEADERS = {
  "content-type": "application/json",
  accept: "application/json, text/event-stream",
};
const LEGACY = { "mcp-protocol-version": "2025-11-25" };

let home: string;
let engine: TaskEngine;
let server: HttpServer;
const logged: string[] = [];

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "taskferry-hostile-"));
  const note = (fields: object, message: string) => void logged.push(`${JSON.stringify(fields)} ${message}`);
  engine = await createTaskEngine({
    workflows: fixtureWorkflows(home),
    store: await sqliteStore({ path: join(home, "tasks.db") }),
    limits: { createPerMinute: 100_000, resultPerMinute: 100_000 },
    log: { debug: note, info: note, warn: note, error: note },
  });
  server = await serveHttp(engine, { name: "hostile", version: "0", inlineWaitMs: 200 });
});

afterAll(async () => {
  await server.close();
  await engine.close();
  await rm(home, { recursive: true, force: true });
});

/** Sends bytes as they are. */
async function post(body: string | Uint8Array, headers: Record<string, string> = LEGACY) {
  const response = await fetch(server.url, { method: "POST", headers: { ...HEADERS, ...headers }, body });
  const text = await response.text();
  const json = text.startsWith("{") || text.startsWith("[") ? JSON.parse(text) : lastData(text);
  return { status: response.status, ...json };
}

function lastData(text: string): Json {
  const line = text.split("\n").findLast((each) => each.startsWith("data:"));
  return line === undefined ? {} : JSON.parse(line.slice(5));
}

async function goesOn(): Promise<void> {
  const { result } = await stateless(server.url, "tools/call", {
    name: "echo",
    arguments: { text: "still here" },
  });
  expect(result.structuredContent).toEqual({ text: "still here" });
}

const call = (params: Json): string =>
  JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
const nested = (levels: number): string => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`;

describe("bodies that are no message", () => {
  test.each([
    ["nothing", "", 400, -32700],
    ["half an object", '{"jsonrpc":"2.0",', 400, -32700],
    ["a lone word", "tasks/get", 400, -32700],
    ["bytes that are no text", new Uint8Array([0xff, 0xfe, 0x00]), 400, -32700],
    ["a number", "7", 400, undefined],
    ["null", "null", 400, undefined],
    ["text", '"tools/list"', 400, undefined],
    ["an empty batch", "[]", 400, -32600],
    ["a batch of nonsense", '[1,{"a":2}]', 400, undefined],
    ["no version", '{"id":1,"method":"tools/list"}', 400, undefined],
    ["another version", '{"jsonrpc":"1.0","id":1,"method":"tools/list"}', 400, undefined],
    ["a method that is none", '{"jsonrpc":"2.0","id":1,"method":7}', 400, undefined],
    ["an id that is an object", '{"jsonrpc":"2.0","id":{},"method":"tools/list"}', 400, undefined],
    ["a number too large to be one", '{"jsonrpc":"2.0","id":1e999,"method":"tools/list"}', 400, undefined],
  ])("%s", async (_what, body, status, code) => {
    const reply = await post(body);
    expect(reply.status).toBe(status);
    expect(reply.error.code).toEqual(code ?? expect.any(Number));
    expect([-32700, -32600, -32602]).toContain(reply.error.code);
    expect(reply.error.message.length).toBeGreaterThan(10);
    await goesOn();
  });

  test("another content type is 415, another method of HTTP 405, another path 404", async () => {
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]) {
      const reply = await post(call({ name: "echo" }), { ...LEGACY, "content-type": type });
      expect(reply).toMatchObject({
        status: 415,
        error: { message: expect.stringContaining("application/json") },
      });
    }
    expect((await fetch(server.url, { method: "PUT", headers: HEADERS, body: "{}" })).status).toBe(405);
    expect((await fetch(new URL("/other", server.url))).status).toBe(404);
    await goesOn();
  });

  test.each(["GET // HTTP/1.1", "GET http://[ HTTP/1.1", "POST /%zz HTTP/1.1", "OPTIONS * HTTP/1.1"])(
    "a request line %j that is no target is answered",
    async (line) => {
      const socket = connect(server.port, "127.0.0.1");
      const head = await new Promise<string>((resolve, reject) => {
        socket.on("data", (chunk) => resolve(String(chunk))).on("error", reject);
        socket.write(`${line}\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n`);
      });
      expect(head).toMatch(/^HTTP\/1\.1 4\d\d/);
      socket.destroy();
      await goesOn();
    },
  );
});

describe("sizes", () => {
  test("10 MB of arguments are refused with what is allowed, over HTTP", async () => {
    const reply = await post(call({ name: "echo", arguments: { text: "x".repeat(10_000_000) } }));
    expect(reply).toMatchObject({
      status: 413,
      error: { message: expect.stringMatching(/at most \d+ bytes/) },
    });
    await goesOn();
  });

  test("10 MB of arguments are taken where they are allowed, and over stdio", async () => {
    const text = "x".repeat(10_000_000);
    const wide = await overHttp(engine, { maxBodyBytes: 16_000_000 });
    const reply = await stateless(wide.url, "tools/call", { name: "echo", arguments: { text } });
    expect(reply.result.structuredContent.text).toHaveLength(10_000_000);
    const { client } = await rawClient(overStdio(engine).transport, "2025-11-25");
    const { result } = await client.request("tools/call", { name: "echo", arguments: { text } });
    expect(result.structuredContent.text).toHaveLength(10_000_000);
  }, 20_000);

  test.each([10_000, 100_000, 500_000])("%i levels of JSON are answered", async (levels) => {
    const deep = nested(levels);
    for (const params of [
      `{"name":"echo","arguments":{"text":${deep}}}`,
      `{"name":"echo","arguments":{"text":"x","more":${deep}}}`,
      `{"name":"echo","arguments":{"text":"x"},"_meta":{"more":${deep}}}`,
      `{"name":"echo","arguments":{"text":"x"},"task":${deep}}`,
    ]) {
      const reply = await post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`);
      expect("result" in reply || reply.error.code < 0, JSON.stringify(reply).slice(0, 300)).toBe(true);
    }
    const taskId = await post(`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":${deep}}}`);
    expect(taskId.error.code).toBeLessThan(0);
    await goesOn();
  });

  test.each([257, 100_000])("a task id of %i characters is never found, and never made", async (length) => {
    const taskId = "i".repeat(length);
    for (const method of ["tasks/get", "tasks/result", "tasks/cancel", "tasks/delete"]) {
      expect((await stateless(server.url, method, { taskId })).error?.code).toBe(-32602);
    }
    const { error } = await stateless(server.url, "tools/call", {
      name: "echo",
      arguments: { text: "x" },
      _meta: { [DRAFT_TASK]: { taskId } },
    });
    expect(error).toMatchObject({ code: -32602, message: expect.stringContaining("1 to 256 characters") });
  });
});

describe("wrong types", () => {
  const ODD: Json[] = [null, 7, -1, 1.5, true, "", "text", [], [1], {}, { a: 1 }];

  test.each(["tasks/get", "tasks/result", "tasks/cancel", "tasks/delete"])(
    "%s with odd task ids",
    async (method) => {
      for (const taskId of [...ODD, undefined]) {
        const { error } = await stateless(server.url, method, { taskId });
        expect(error?.code).toBe(-32602);
        expect(error?.message).toMatch(/taskId|not found/i);
      }
      for (const params of [null, 7, "x", []]) {
        const reply = await post(JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }));
        expect([-32600, -32602]).toContain(reply.error.code);
      }
    },
  );

  test("tools/call with odd names, arguments, task and metas", async () => {
    for (const odd of ODD) {
      const named = await stateless(server.url, "tools/call", { name: odd });
      expect(named.error?.code).toBe(-32602);
      const args = await stateless(server.url, "tools/call", { name: "echo", arguments: odd });
      expect(args.error?.code).toBe(-32602);
      if (odd === null || typeof odd !== "object" || Array.isArray(odd)) {
        const task = await stateless(server.url, "tools/call", {
          name: "echo",
          arguments: { text: "x" },
          task: odd,
        });
        expect(task.error?.code).toBe(-32602);
        const draft = await stateless(server.url, "tools/call", {
          name: "echo",
          arguments: { text: "x" },
          _meta: { [DRAFT_TASK]: odd },
        });
        expect(draft.error?.code).toBe(-32602);
      }
    }
    for (const ttl of ["soon", -1, {}, [], true]) {
      const task = { ttl };
      const { error } = await stateless(server.url, "tools/call", {
        name: "echo",
        arguments: { text: "x" },
        task,
      });
      expect(error).toMatchObject({ code: -32602, message: expect.stringContaining("ttl") });
      const _meta = { [DRAFT_TASK]: { taskId: `t-${JSON.stringify(ttl)}`, keepAlive: ttl } };
      const draft = await stateless(server.url, "tools/call", {
        name: "echo",
        arguments: { text: "x" },
        _meta,
      });
      expect(draft.error).toMatchObject({ code: -32602, message: expect.stringContaining("keepAlive") });
    }
    await goesOn();
  });

  test("2026-07-28: odd ids, input responses and states", async () => {
    const { transport } = overStdio(engine);
    const client = await modernPipe(transport);
    const ask = (method: string, params: Json) => client.request(method, modern(params, TASKS));
    for (const odd of ODD) {
      for (const method of ["tasks/get", "tasks/update", "tasks/cancel"]) {
        const { error } = await ask(method, { taskId: odd, inputResponses: {} });
        expect(error?.code).toBe(-32602);
      }
    }
    const { result } = await ask("tools/call", { name: "waits", arguments: { gate: "/never" } });
    const { error: missing } = await ask("tasks/update", { taskId: result.taskId });
    expect(missing).toMatchObject({ code: -32602, message: expect.stringContaining("inputResponses") });
    // The SDK makes an empty object of what is none.
    for (const inputResponses of [null, 7, "x", [1]]) {
      const { error } = await ask("tasks/update", { taskId: result.taskId, inputResponses });
      expect(error).toBeUndefined();
    }
    for (const requestState of [7, {}, "", "made.up", "x".repeat(100_000)]) {
      const { error } = await ask("tools/call", { name: "greets", arguments: {}, requestState });
      expect(error?.code).toBe(-32602);
    }
    await ask("tasks/cancel", { taskId: result.taskId });
  });

  test("cursors that were never given out", async () => {
    for (const cursor of [...ODD, "made.up", `${"A".repeat(60_000)}.AA`, "..", "eyJhIjoxfQ.AAAA"]) {
      const { error } = await stateless(server.url, "tasks/list", { cursor });
      expect(error?.code).toBe(-32602);
      expect(error?.message).toMatch(/cursor/i);
    }
  });

  test("unknown fields are no mistake, and reach nobody", async () => {
    const params = { name: "echo", arguments: { text: "x", more: 1 }, more: {}, _meta: { "a/b": 1 } };
    expect((await stateless(server.url, "tools/call", params)).result.structuredContent).toEqual({
      text: "x",
    });
    const proto =
      '{"name":"echo","arguments":{"text":"x","__proto__":{"isError":true}},"__proto__":{"task":{}}}';
    const reply = await post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${proto}}`);
    expect(reply.result.structuredContent).toEqual({ text: "x" });
    expect(({} as Json).isError).toBeUndefined();
  });

  test("unknown methods are -32601", async () => {
    for (const method of ["tasks/unknown", "tasks/update", "__proto__", "constructor", "tasks/get\u0000"]) {
      expect((await stateless(server.url, method, { taskId: "x" })).error?.code).toBe(-32601);
    }
  });
});

test.each([
  ["control characters", "a\u0000b\u0007\u001b[31m\n\r"],
  ["a lone surrogate", "a\ud800b"],
  ["another lone surrogate", "\udfff"],
  ["no character at all, U+FFFE", "\ufffe"],
  ["words of a path", "../../etc/passwd"],
  ["words of SQL", `'; DROP TABLE tasks; --`],
  ["letters that look alike, decomposed", "e\u0301 \u00e9"],
])("a draft task id of %s is kept byte for byte, and is only itself", async (_what, taskId) => {
  const related = { "modelcontextprotocol.io/related-task": { taskId } };
  const made = await stateless(server.url, "tools/call", {
    name: "echo",
    arguments: { text: "odd" },
    _meta: { [DRAFT_TASK]: { taskId } },
  });
  expect(made.result).toMatchObject({ structuredContent: { text: "odd" }, _meta: related });
  expect((await stateless(server.url, "tasks/get", { taskId, _meta: related })).result.taskId).toBe(taskId);
  for (const other of [`${taskId} `, taskId.normalize("NFC") + taskId.normalize("NFC"), "\ufffd"]) {
    expect((await stateless(server.url, "tasks/get", { taskId: other })).error?.code).toBe(-32602);
  }
  await goesOn();
});

test("arguments and results hold any text there is", async () => {
  for (const text of [
    "\u0000\u001b",
    "\ud800",
    "\u2028\u2029",
    "🦀".repeat(1000),
    "</script>",
    "data: x\n\n",
  ]) {
    const { result } = await stateless(server.url, "tools/call", { name: "echo", arguments: { text } });
    expect(result.structuredContent).toEqual({ text });
  }
});

test("what was planted in tokens, arguments, answers and headers is in no log line", async () => {
  const guarded = await overHttp(engine, { verify: (token) => ({ issuer: "i", subject: token }) });
  const secret = { authorization: `Bearer ${SECRET}` };
  const planted: Json[] = [
    { name: "echo", arguments: { text: SECRET } },
    { name: "echo", arguments: { [SECRET]: SECRET } },
    { name: "echo", arguments: { text: { token: SECRET } } },
    { name: SECRET },
    { name: "fails", arguments: { text: SECRET } },
    { name: "echo", arguments: { text: "x" }, task: SECRET },
    { name: "echo", arguments: { text: "x" }, _meta: { [DRAFT_TASK]: { taskId: SECRET } } },
    { name: "task_status", arguments: { taskId: SECRET } },
    { name: "task_answer", arguments: { taskId: SECRET, content: { password: SECRET } } },
  ];
  for (const params of planted) await stateless(guarded.url, "tools/call", params, secret);
  for (const method of ["tasks/get", "tasks/result", SECRET])
    await stateless(guarded.url, method, { taskId: SECRET, cursor: SECRET }, secret);
  await post(`{"jsonrpc":"2.0","password":"${SECRET}`);
  await post(call({ name: "echo", arguments: { text: SECRET } }), {
    ...LEGACY,
    "content-type": "text/plain",
  });
  await post(call({ name: "echo", arguments: { text: SECRET } }), { "mcp-protocol-version": SECRET });
  const { transport } = overStdio(engine);
  const client = await modernPipe(transport);
  await client.request("tools/call", modern({ name: "echo", arguments: { text: [SECRET] } }, TASKS));
  await client.request("tools/call", modern({ name: "greets", arguments: {}, requestState: SECRET }, TASKS));
  expect(logged.length).toBeGreaterThan(5);
  expect(logged.filter((line) => line.includes(SECRET))).toEqual([]);
});
