/** A real stdio server that is fed garbage: stdout carries the protocol and nothing else, and the log tells no secrets. */
import { expect, test } from "vitest";
import { tempDir } from "../support/engines.js";
import type { Json } from "../support/raw-client.js";
import { stdioProcess, until } from "../support/server-process.js";

const SECRET = "hunter2-the-planted-secret";

test("garbage on stdin is answered or left alone, and the conversation goes on", async () => {
  const server = stdioProcess(await tempDir(), { serve: { inlineWaitMs: 2_000 } });
  let id = 0;
  const line = (text: string) => server.child.stdin.write(`${text}\n`);
  const messages = (): Json[] =>
    server.stdout
      .split("\n")
      .slice(0, -1)
      .map((text) => JSON.parse(text));
  const request = (method: string, params: Json) => {
    const own = ++id;
    line(JSON.stringify({ jsonrpc: "2.0", id: own, method, params }));
    return until(() => {
      const reply = messages().find((message) => message.id === own);
      if (reply === undefined) throw new Error(`no answer to ${method}`);
      return reply;
    });
  };

  await request("initialize", {
    protocolVersion: "2025-11-25",
    capabilities: {},
    clientInfo: { name: "raw", version: "0" },
  });
  line(JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" }));

  const deep = `${'{"a":'.repeat(10_000)}1${"}".repeat(10_000)}`;
  for (const garbage of [
    "",
    "not json",
    '{"jsonrpc":"2.0",',
    "null",
    "7",
    "[]",
    "[1,2]",
    '{"jsonrpc":"2.0"}',
    '{"jsonrpc":"2.0","id":null,"method":"tools/list"}',
    '{"jsonrpc":"2.0","id":{},"method":"tools/list"}',
    '{"jsonrpc":"2.0","id":999,"result":{"never":"asked"}}',
    '{"jsonrpc":"2.0","method":"notifications/cancelled"}',
    '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{"a":1},"_meta":7}}',
    '{"jsonrpc":"2.0","method":"notifications/unknown","params":[]}',
    `{"jsonrpc":"2.0","id":"deep","method":"tools/call","params":{"name":"echo","arguments":{"text":${deep}}}}`,
    `{"jsonrpc":"2.0","id":"deeper","method":"tasks/get","params":{"taskId":${deep}}}`,
    `{"jsonrpc":"2.0","id":"secret","method":"tools/call","params":{"name":"echo","arguments":{"token":"${SECRET}"}}}`,
    `{"password":"${SECRET}"`,
    "\u0000\u0001\u0002",
    `${SECRET}`,
  ]) {
    line(garbage);
  }
  server.child.stdin.write(Buffer.from([0xff, 0xfe, 0x0a]));

  const reply = await request("tools/call", { name: "echo", arguments: { text: "still here" } });
  expect(reply.result.structuredContent).toEqual({ text: "still here" });
  const answered = (key: string) => messages().find((message) => message.id === key);
  expect(answered("deep").error.code).toBe(-32602);
  expect(answered("deeper").error.code).toBe(-32602);
  expect(answered("secret").error.code).toBe(-32602);
  // Commands and functions that print, print elsewhere: every line of stdout is a message.
  await request("tools/call", { name: "fails", arguments: {} });
  for (const message of messages()) expect(message.jsonrpc).toBe("2.0");

  server.child.stdin.end();
  await until(() => expect(server.child.exitCode).toBe(0));
  expect(server.stdout.endsWith("\n")).toBe(true);
  expect(server.stderr).toContain("task.created");
  expect(server.stderr).not.toContain(SECRET);
}, 20_000);

test("10 MB of arguments come and go over the pipe", async () => {
  const server = stdioProcess(await tempDir(), { serve: { inlineWaitMs: 10_000 } });
  const params = {
    protocolVersion: "2025-11-25",
    capabilities: {},
    clientInfo: { name: "raw", version: "0" },
  };
  const write = (id: number, method: string, body: Json) =>
    server.child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params: body })}\n`);
  write(1, "initialize", params);
  write(2, "tools/call", { name: "echo", arguments: { text: "x".repeat(10_000_000) } });
  await until(() => expect(server.stdout.length).toBeGreaterThan(10_000_000));
  write(3, "tools/call", { name: "echo", arguments: { text: "still here" } });
  await until(() => expect(server.stdout).toContain("still here"));
}, 30_000);
