/** Webhooks beside the MCP path: verified by the adapter, and nothing more than a hint to read. */
import { expect, test } from "vitest";
import {
  defineWorkflow,
  EngineError,
  LOCAL_OWNER,
  type RunRef,
  type TaskEngine,
  type WorkflowAdapter,
} from "../src/index.js";
import { testEngine } from "./support/engines.js";
import { overHttp } from "./support/serving.js";

const PATH = "/webhooks/bell";

/** An engine that rings: `x-bell` is its signature, and the body the key of a run. */
class Bell implements WorkflowAdapter {
  readonly engine = "bell";
  readonly ended = new Set<string>();
  readonly heard: { headers: Readonly<Record<string, string>>; body: Uint8Array }[] = [];
  broken = false;
  reads = 0;

  async start({ key }: { key: string }) {
    return { ref: key };
  }

  async read(ref: RunRef) {
    this.reads += 1;
    const done = this.ended.has(String(ref));
    return { native: done ? "RUNG" : "QUIET", status: done ? "completed" : "working" } as const;
  }

  async events({ headers, body }: { headers: Readonly<Record<string, string>>; body: Uint8Array }) {
    if (this.broken) throw new Error("no answer");
    this.heard.push({ headers, body });
    if (headers["x-bell"] !== "ding") {
      throw new EngineError({ kind: "rejected", code: "BadSignature", message: "Not the bell." });
    }
    return [new TextDecoder().decode(body)];
  }
}

async function belfry() {
  const bell = new Bell();
  const silent: WorkflowAdapter = { engine: "silent", start: bell.start, read: bell.read };
  // So slow that only a hint can have caused a second read within this test.
  const workflows = [
    defineWorkflow({ name: "ring", adapter: bell, pollMs: 600_000 }),
    defineWorkflow({ name: "silence", adapter: silent }),
  ];
  const engine = await testEngine({ workflows });
  return { bell, engine };
}

async function deliver(
  url: string,
  body: string | Uint8Array<ArrayBuffer>,
  headers: Record<string, string> = {},
) {
  const response = await fetch(new URL(PATH, url), {
    method: "POST",
    body,
    headers: { "X-Bell": "ding", ...headers },
  });
  return { status: response.status, text: await response.text() };
}

async function begin(engine: TaskEngine) {
  const { task } = await engine.create({
    owner: LOCAL_OWNER,
    generation: "2026-07-28",
    workflow: "ring",
    arguments: {},
  });
  const look = async () => (await engine.peek(LOCAL_OWNER, task.taskId)).task;
  await engine.get(LOCAL_OWNER, task.taskId);
  await expect.poll(async () => (await look()).native).toBe("QUIET");
  return { look, key: task.startKey };
}

test("a delivery wakes the task that it is about, long before its next read", async () => {
  const { bell, engine } = await belfry();
  const { url } = await overHttp(engine, { webhooks: { [PATH]: "ring" } });
  const { look, key } = await begin(engine);
  bell.ended.add(key);
  expect(await deliver(url, key)).toEqual({ status: 202, text: "" });
  await expect.poll(async () => (await look()).status).toBe("completed");
  // Another one, late: the task has ended, and stays so.
  const { reads } = bell;
  expect((await deliver(url, key)).status).toBe(202);
  expect(bell.reads).toBe(reads);
});

test("what is not authentic is refused and wakes nobody; about strangers, it is taken and forgotten", async () => {
  const { bell, engine } = await belfry();
  const { url } = await overHttp(engine, { webhooks: { [PATH]: "ring" } });
  const { look, key } = await begin(engine);
  bell.ended.add(key);
  const { reads } = bell;
  expect(await deliver(url, key, { "X-Bell": "dong" })).toEqual({ status: 401, text: "" });
  expect((await deliver(url, "a-stranger")).status).toBe(202);
  expect(bell.reads).toBe(reads);
  expect((await look()).status).toBe("working");
});

test("the adapter gets the very bytes, and lower-case header names", async () => {
  const { bell, engine } = await belfry();
  const { url } = await overHttp(engine, { webhooks: { [PATH]: "ring" } });
  const bytes = new Uint8Array([0xff, 0x00, 0xc3, 0x28, 0x0a]);
  await deliver(url, bytes, { "X-Bell": "dong", "Content-Type": "application/x-Thing" });
  const [heard] = bell.heard;
  expect([...(heard?.body ?? [])]).toEqual([...bytes]);
  expect(heard?.headers).toMatchObject({ "x-bell": "dong", "content-type": "application/x-Thing" });
});

test("an adapter that cannot say now asks the sender to come again, and one too large is cut", async () => {
  const { bell, engine } = await belfry();
  const { url } = await overHttp(engine, { webhooks: { [PATH]: "ring" }, maxBodyBytes: 64 });
  expect((await deliver(url, "x".repeat(65))).status).toBe(413);
  expect(bell.heard).toHaveLength(0);
  bell.broken = true;
  expect((await deliver(url, "x")).status).toBe(503);
});

test("only POST is taken, only at its path, and foreign hosts are refused", async () => {
  const { engine } = await belfry();
  const { url } = await overHttp(engine, { webhooks: { [PATH]: "ring" } });
  const got = await fetch(new URL(PATH, url));
  expect([got.status, got.headers.get("allow")]).toEqual([405, "POST"]);
  expect((await fetch(new URL("/webhooks/other", url), { method: "POST" })).status).toBe(404);
  expect((await deliver(url, "x", { Origin: "https://evil.example" })).status).toBe(403);
});

test("they need no bearer token, where MCP does", async () => {
  const { engine } = await belfry();
  const { url } = await overHttp(engine, { webhooks: { [PATH]: "ring" }, verify: () => undefined });
  expect((await fetch(url, { method: "POST" })).status).toBe(401);
  expect((await deliver(url, "x")).status).toBe(202);
});

test.each([
  ["an unknown workflow", { [PATH]: "unknown" }, 'there is no workflow "unknown"'],
  ["an adapter without events", { [PATH]: "silence" }, "takes no events"],
  ["the path of MCP", { "/mcp": "ring" }, "another path"],
  ["no path", { webhooks: "ring" }, "another path"],
])("%s is a configuration error", async (_, webhooks, message) => {
  const { engine } = await belfry();
  await expect(overHttp(engine, { webhooks })).rejects.toMatchObject({
    code: "configuration",
    message: expect.stringContaining(message),
  });
});
