/** One trace from the client's call to the engine's, and nothing in it that was said. */
import type { ReadableSpan } from "@opentelemetry/sdk-trace-base";
import { expect, test } from "vitest";
import { z } from "zod";
import { defineWorkflow, EngineError, type TaskEngine } from "../../src/index.js";
import { SPANS } from "../../src/observe/observe.js";
import { MODERN_CAPABILITIES } from "../support/clients.js";
import { tempDir, testEngine } from "../support/engines.js";
import { fixtureWorkflows } from "../support/fixture-workflows.mjs";
import { type Json, modernRequest } from "../support/raw-client.js";
import { ASKING, ScriptedEngine } from "../support/scripted-engine.js";
import { calls, until } from "../support/server-process.js";
import { overHttp } from "../support/serving.js";
import { recorder, telemetry } from "./telemetry.js";

const otel = telemetry();
const QUICK = { tickMs: 20, startWaitMs: 500, readWaitMs: 500 };
const TRACE = "0af7651916cd43dd8448eb211c80319c";
const CLIENT_SPAN = "b7ad6b7169203331";
const traceparent = `00-${TRACE}-${CLIENT_SPAN}-01`;

async function serving(workflows: Json, log = recorder().log) {
  const engine = await testEngine({ workflows, log, timing: QUICK });
  const server = await overHttp(engine);
  const request = (method: string, params: Json) =>
    modernRequest(server.url, method, params, { capabilities: MODERN_CAPABILITIES });
  return { engine, server, request };
}

const named = (name: string, trace?: string) =>
  otel
    .spans()
    .filter((span) => span.name === name && (trace === undefined || span.spanContext().traceId === trace));
const parents = (span: ReadableSpan): string[] => {
  const id = span.parentSpanContext?.spanId;
  const parent = otel.spans().find((each) => each.spanContext().spanId === id);
  return parent === undefined ? (id === undefined ? [] : [id]) : [parent.name, ...parents(parent)];
};

test("a call goes on in the trace that the client sends along, down to the engine's calls", async () => {
  const home = await tempDir();
  const { request } = await serving(fixtureWorkflows(home));
  const call = { name: "at_engine", arguments: { label: "traced" }, _meta: { traceparent } };
  const { taskId } = (await request("tools/call", call)).result;
  await until(() => expect(named("tools/call", TRACE)).toHaveLength(1));
  const [start] = named("taskferry.engine.start", TRACE);
  expect(parents(start!)).toEqual(["taskferry.work", "taskferry.create", "tools/call", CLIENT_SPAN]);
  expect(named("tools/call", TRACE)[0]).toMatchObject({
    kind: 1,
    attributes: { "mcp.method.name": "tools/call" },
  });

  // Twice: the first poll of a kind of client is answered by the SDK's entry, later ones take the short way.
  for (const trace of [TRACE.replace("0", "1"), TRACE.replace("0", "2")]) {
    const poll = { taskId, _meta: { traceparent: traceparent.replace(TRACE, trace) } };
    await until(async () => {
      await request("tasks/get", poll);
      expect(named("taskferry.engine.read", trace)).not.toEqual([]);
    });
    const [read] = named("taskferry.engine.read", trace);
    expect(parents(read!)).toEqual(["taskferry.work", "taskferry.get", "tasks/get", CLIENT_SPAN]);
    const [run] = calls(home, "engine", "run");
    expect(read!.attributes).toEqual({
      "taskferry.engine": "files",
      "taskferry.run": `https://engine.example/${run!.key}`,
      "taskferry.task": expect.stringMatching(/^[0-9a-f]{12}$/),
    });
    expect(JSON.stringify(read!.attributes)).not.toContain(taskId);
  }
  // One task is one name in all of them.
  const tasks = otel.spans().flatMap(({ attributes }) => attributes["taskferry.task"] ?? []);
  expect(new Set(tasks).size).toBe(1);

  await request("tasks/cancel", { taskId });
  await until(() => expect(named("taskferry.engine.stop")).toHaveLength(1));
});

test("what nobody asks for is a trace of its own", async () => {
  const home = await tempDir();
  const { request } = await serving(fixtureWorkflows(home));
  const call = { name: "at_engine", arguments: { label: "unasked" }, _meta: { traceparent } };
  await request("tools/call", call);
  const due = () =>
    named("taskferry.work").filter(({ attributes }) => attributes["taskferry.reason"] === "due");
  await until(() => expect(due().length).toBeGreaterThan(0));
  expect(due()[0]?.spanContext().traceId).not.toBe(TRACE);
  expect(parents(due()[0]!)).toEqual([]);
});

test("a traceparent that is none, and baggage, do no harm", async () => {
  const { request } = await serving(fixtureWorkflows(await tempDir()));
  for (const sent of [
    { traceparent: "00-x" },
    { traceparent: 7 },
    { traceparent, tracestate: 5, baggage: "a=b" },
  ]) {
    const { result } = await request("tools/call", { name: "echo", arguments: { text: "hi" }, _meta: sent });
    expect(result.taskId).toBeTypeOf("string");
  }
});

test("an error is told by its name, or its code", async () => {
  const { request } = await serving(fixtureWorkflows(await tempDir()));
  await request("tasks/get", { taskId: "not there" });
  const [get] = named("taskferry.get");
  expect(get?.attributes["error.type"]).toBe("task_not_found");
  expect(get?.status).toEqual({ code: 2, message: "task_not_found" });
  expect(get?.events).toEqual([]);
});

test("no payload and no secret is in any attribute, metric, log line or event", async () => {
  const secrets: string[] = [];
  const plant = (where: string) => {
    const secret = `s3cr3t-${where}-4711`;
    secrets.push(secret);
    return secret;
  };
  const { log, lines } = recorder();
  const script = new ScriptedEngine();
  const adapter = {
    ...script.adapter,
    stop: async () => {
      throw new EngineError({ kind: "retry", message: plant("stop-error") });
    },
  };
  const failing = {
    engine: "failing",
    start: async () => {
      throw new Error(plant("unexplained-error"));
    },
    read: async () => {
      throw new Error(plant("never"));
    },
  };
  const input = z.object({ text: z.string() });
  const workflows = [
    defineWorkflow({ name: "flow", pollMs: 20, input, adapter }),
    defineWorkflow({ name: "failing", pollMs: 20, input, adapter: failing }),
  ];
  const { engine, request } = await serving(workflows, log);
  const _meta = { "taskferry.dev/idempotency-key": plant("key"), baggage: `x=${plant("baggage")}` };
  const call = (name: string, text: string) => request("tools/call", { name, arguments: { text }, _meta });

  const { taskId } = (await call("flow", plant("argument"))).result;
  script.state = { ...ASKING, native: "WAITING", message: plant("message") };
  await until(async () =>
    expect((await request("tasks/get", { taskId })).result.status).toBe("input_required"),
  );
  const { inputRequests } = (await request("tasks/get", { taskId })).result;
  const [key] = Object.keys(inputRequests);
  const answer = { [key!]: { action: "accept", content: { name: plant("answer") } } };
  await request("tasks/update", { taskId, inputResponses: answer });
  await until(() => expect(script.answers).toHaveLength(1));
  await request("tasks/cancel", { taskId });
  await until(() => expect(named("taskferry.engine.stop")).not.toEqual([]));
  script.state = { native: "DONE", status: "completed", output: { value: plant("output") } };
  await until(async () => expect((await request("tasks/get", { taskId })).result.status).toBe("completed"));
  // The same key for another request; arguments that do not fit; an id, a tool and a method that are not there.
  expect((await call("flow", plant("conflict"))).error).toBeDefined();
  await request("tools/call", { name: "flow", arguments: { text: { [plant("misfit")]: 1 } } });
  await request("tools/call", { name: plant("tool"), arguments: {} });
  await request("tasks/get", { taskId: plant("task-id") });
  await request(plant("method"), {});
  await request("tools/call", { name: "failing", arguments: { text: plant("failing-argument") } });
  await until(() => expect(named("taskferry.engine.start").length).toBeGreaterThan(1));

  const spans = otel
    .spans()
    .map(({ name, attributes, events, status, links }) => ({ name, attributes, events, status, links }));
  const told = JSON.stringify([spans, await otel.points(), lines, await eventsOf(engine)]);
  expect(secrets.length).toBeGreaterThan(12);
  expect(secrets.filter((secret) => told.includes(secret))).toEqual([]);
  expect(told).not.toContain(taskId);
  for (const heard of ["taskferry.native.calls", "task.status", "result.retrieved", "taskferry.reason"])
    expect(told).toContain(heard);
  expect(spans.length).toBeGreaterThan(20);
});

test("spans below a request have the documented names, and no attribute beyond", async () => {
  const { request } = await serving(fixtureWorkflows(await tempDir()));
  const { taskId } = (await request("tools/call", { name: "at_engine", arguments: { label: "x" } })).result;
  await request("tasks/get", { taskId });
  await request("tasks/cancel", { taskId });
  await until(() => expect(named("taskferry.engine.stop")).toHaveLength(1));
  const known: Readonly<Record<string, readonly string[]>> = SPANS;
  const below = otel.spans().filter(({ name }) => name.startsWith("taskferry."));
  expect(below.length).toBeGreaterThan(5);
  for (const { name, attributes } of below) {
    const more = Object.keys(attributes).filter((key) => key !== "error.type" && !known[name]?.includes(key));
    expect(more, name).toEqual([]);
  }
});

/** The event log, without the names of tasks and owners, which are its keys. */
async function eventsOf(engine: TaskEngine): Promise<Json[]> {
  const { store } = engine as unknown as { store: { events(o: { limit: number }): Promise<Json[]> } };
  return (await store.events({ limit: 1_000 })).map(({ type, detail }) => ({ type, detail }));
}
