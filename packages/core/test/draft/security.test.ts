/** SEP-1686, 8.1 and 8.3: whose tasks are whose, rates, and the audit. */
import { metrics } from "@opentelemetry/api";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import { expect, onTestFinished, test } from "vitest";
import type { Logger } from "../../src/index.js";
import { type DraftOptions, draft } from "../support/draft-fixtures.js";
import { type Json, modernRequest } from "../support/raw-client.js";
import { ASKING } from "../support/scripted-engine.js";
import { accept, session } from "../support/sessions.js";

const tokens: DraftOptions = {
  http: { verify: (token: string) => ({ issuer: "test", subject: token }) },
  client: { headers: { authorization: "Bearer ann" } },
};
const bob = { headers: { authorization: "Bearer bob" } };

/** A logger that keeps every line, and all of it as text. */
function recorder() {
  const lines: { level: string; message: string; fields: Json }[] = [];
  const at = (level: string) => (fields: object, message: string) =>
    void lines.push({ level, message, fields });
  const log: Logger = { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
  const audit = () => lines.flatMap(({ fields }) => (fields.audit === undefined ? [] : [fields.audit]));
  return { log, lines, audit };
}

test("8.1 another principal's task is not found, by whichever method", async () => {
  const { client, connect, door } = await draft(tokens);
  const { taskId } = await client.created("waits");
  const stranger = await connect(bob);
  for (const method of ["tasks/get", "tasks/result", "tasks/delete"]) {
    const verb = method === "tasks/delete" ? "delete" : "retrieve";
    expect((await stranger.about(method, taskId)).error).toEqual({
      code: -32602,
      message: `Failed to ${verb} task: Task not found`,
    });
  }
  expect(await stranger.listAll()).toEqual([]);
  await stranger.cancel(1, { "modelcontextprotocol.io/related-task": { taskId } });
  await stranger.raw.request("ping");
  expect(await client.reaches(taskId, "working")).toBeDefined();
  door.open();
});

test("8.1 the same id of two principals is two tasks", async () => {
  const { client, connect } = await draft(tokens);
  const stranger = await connect(bob);
  await client.tool("echo", { text: "ann's" }, { taskId: "same" }).reply;
  await stranger.tool("echo", { text: "bob's" }, { taskId: "same" }).reply;
  expect((await client.result("same")).result.structuredContent).toEqual({ text: "ann's" });
  expect((await stranger.result("same")).result.structuredContent).toEqual({ text: "bob's" });
  await client.delete("same");
  expect((await stranger.result("same")).result.structuredContent).toEqual({ text: "bob's" });
});

test("8.1 a principal finds its tasks again in another session", async () => {
  const { client, connect } = await draft(tokens);
  const { taskId, reply } = client.tool("echo", { text: "hi" });
  await reply;
  const again = await connect(tokens.client);
  expect(await again.get(taskId)).toMatchObject({ status: "completed" });
});

test("8.1 anonymous sessions do not see each other's tasks", async () => {
  const { client, connect } = await draft({ http: { allowAnonymous: true } });
  const { taskId, reply } = client.tool("echo", { text: "hi" });
  await reply;
  expect(await client.get(taskId)).toMatchObject({ status: "completed" });
  const other = await connect();
  expect((await other.about("tasks/get", taskId)).error).toMatchObject({ code: -32602 });
});

for (const [operation, limit, act] of [
  ["create", "createPerMinute", ({ client }) => client.tool("echo", { text: "hi" }).reply],
  ["get", "getPerMinute", ({ client }) => client.about("tasks/get", "t")],
  ["result", "resultPerMinute", ({ client }) => client.result("t")],
  ["list", "listPerMinute", ({ client }) => client.list()],
] as [string, string, (made: Awaited<ReturnType<typeof draft>>) => Promise<Json>][]) {
  test(`8.1 the rate of ${operation} is limited per owner, and who hits the limit is told when to come back`, async () => {
    const { log, lines } = recorder();
    const made = await draft({ ...tokens, engine: { log, limits: { [limit]: 3 } } });
    if (operation === "create") for (let n = 0; n < 3; n++) await act(made);
    else {
      await made.client.tool("echo", { text: "hi" }, { taskId: "t" }).reply;
      for (let n = 0; n < 3; n++) expect((await act(made)).error).toBeUndefined();
    }
    const { error } = await act(made);
    expect(error.code).toBe(-32000);
    expect(error.message).toMatch(
      new RegExp(`^Rate limit reached: at most 3 ${operation} requests a minute. Try again in \\d+ s.$`),
    );
    expect(error.data).toMatchObject({ limit, retryAfterMs: expect.any(Number) });
    await act(made);
    const told = lines.filter(({ message }) => message === "limit.hit");
    expect(told.map(({ level, fields }) => [level, fields.limit])).toEqual([["warn", limit]]);
    // Another owner is not held to it.
    const other = await made.connect(bob);
    const theirs = { ...made, client: other };
    expect((await act(theirs)).error?.code).not.toBe(-32000);
  });
}

test("8.3 creation, end and retrieval are in the audit, with owner and task, and nothing that was said", async () => {
  const { log, lines, audit } = recorder();
  const { client, connect } = await draft({ ...tokens, engine: { log } });
  const secret = "s3cr3t-4711";
  const call = client.tool("echo", { text: secret }, { taskId: `id-${secret}` });
  await call.reply;
  await client.result(call.taskId);
  await client.delete(call.taskId);
  const events = ["task.created", "task.ended", "result.answered", "result.retrieved", "task.deleted"];
  expect(audit()).toEqual(events);
  const about = lines.filter(({ fields }) => fields.audit !== undefined).map(({ fields }) => fields);
  for (const fields of about) {
    expect(fields).toMatchObject({ owner: about[0].owner, task: about[0].task, workflow: "echo" });
    expect(fields.task).toMatch(/^[0-9a-f]{12}$/);
  }
  expect(about[1].status).toBe("completed");
  const stranger = await connect(bob);
  await stranger.tool("echo", { text: secret }).reply;
  expect(new Set(lines.map(({ fields }) => fields.owner).filter(Boolean)).size).toBe(2);
  expect(JSON.stringify(lines)).not.toContain(secret);
});

test("8.3 cancels, failures and questions are in the audit, and no answer or error text is", async () => {
  const { log, lines, audit } = recorder();
  const { client, scripted } = await draft({ engine: { log } });
  const secret = "s3cr3t-4711";
  scripted.state = ASKING;
  const asking = await client.created("scripted");
  await client.answer(await client.asked(asking.taskId), accept({ name: secret }));
  await client.reaches(asking.taskId, "working");
  await client.cancel(asking.id);
  await client.reaches(asking.taskId, "cancelled");
  scripted.state = { native: "DENIED", status: "failed", failure: { code: "Denied", message: secret } };
  await client.tool("scripted").reply;
  await client.tool("echo", { text: { secret } }).reply;
  await client.tool("echo", { text: "hi" }, { taskId: "twice" }).reply;
  await client.tool("echo", { text: secret }, { taskId: "twice" }).reply;
  const ended = lines
    .filter(({ fields }) => fields.audit === "task.ended")
    .map(({ fields }) => fields.status);
  expect(ended).toEqual(["cancelled", "failed", "completed"]);
  expect(audit().filter((event) => event === "task.created")).toHaveLength(3);
  expect(JSON.stringify(lines)).not.toContain(secret);
});

test("8.3 a result is in the audit whichever way it is fetched", async () => {
  const { log, audit } = recorder();
  const { client, url } = await draft({ engine: { log } });
  const { taskId, reply } = client.tool("echo", { text: "hi" });
  await reply;
  const fetched = () => audit().filter((event) => event === "result.retrieved").length;
  await client.result(taskId);
  expect(fetched()).toBe(1);
  const raw = await session(url);
  await raw.request("tasks/result", { taskId });
  expect(fetched()).toBe(2);
  // The second poll takes the short way.
  for (const times of [3, 4]) {
    const { result } = await modernRequest(url, "tasks/get", { taskId });
    expect(result.result.structuredContent).toEqual({ text: "hi" });
    expect(fetched()).toBe(times);
  }
});

test("8.3 many look-ups that fail are told once, with who it was and no id", async () => {
  const { log, lines } = recorder();
  const { client } = await draft({ engine: { log } });
  await Promise.all(Array.from({ length: 80 }, (_, n) => client.about("tasks/get", `guess-${n}`)));
  expect(lines.filter(({ message }) => message === "task.lookup_failed")).toHaveLength(80);
  const warned = lines.filter(({ message }) => message === "many look-ups of tasks that are not there");
  expect(warned).toMatchObject([{ level: "warn", fields: { failedLookups: 60 } }]);
  expect(JSON.stringify(lines)).not.toContain("guess-");
});

test("8.2 8.3 tasks, limits and failed look-ups are counted, also for an SDK that is installed late", async () => {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter });
  const provider = new MeterProvider({ readers: [reader] });
  metrics.setGlobalMeterProvider(provider);
  onTestFinished(async () => {
    metrics.disable();
    await provider.shutdown();
  });
  const { client } = await draft({ engine: { limits: { createPerMinute: 2 } } });
  await client.tool("echo", { text: "hi" }).reply;
  await client.tool("refuses").reply;
  await client.tool("echo", { text: "one too many" }).reply;
  for (const guess of ["a", "b", "c"]) await client.about("tasks/get", guess);
  await provider.forceFlush();
  const points = exporter
    .getMetrics()
    .flatMap(({ scopeMetrics }) => scopeMetrics)
    .flatMap((scope) => scope.metrics)
    .flatMap(({ descriptor, dataPoints }) =>
      dataPoints.map((point) => ({ name: descriptor.name, ...point })),
    );
  const count = (name: string, attributes: object) =>
    points.find((point) => point.name === name && isSubset(attributes, point.attributes))?.value;
  expect(count("taskferry.tasks.created", { engine: "function", generation: "draft" })).toBe(2);
  expect(count("taskferry.tasks.ended", { status: "completed" })).toBe(1);
  expect(count("taskferry.tasks.ended", { status: "failed" })).toBe(1);
  expect(count("taskferry.limits.hits", { limit: "create" })).toBe(1);
  expect(count("taskferry.lookups.failed", {})).toBe(3);
});

function isSubset(part: object, whole: object): boolean {
  return Object.entries(part).every(([key, value]) => Reflect.get(whole, key) === value);
}
