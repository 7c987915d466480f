/** A server that is killed while a real command runs, and what its successor makes of it. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { expect, test } from "vitest";
import { rawClient } from "../support/clients.js";
import { tempDir } from "../support/engines.js";
import { modernRequest, TASKS } from "../support/raw-client.js";
import { calls, endRun, httpProcess, open, stdioProcess, until } from "../support/server-process.js";
import { DRAFT_RELATED, DRAFT_TASK, session, start2025, textOf } from "../support/sessions.js";

test("kill -9 while commands run: the next server tells status, then result, to new sessions of each generation", async () => {
  const home = await tempDir();
  const log = join(home, "commands.log");
  const gate = join(home, "gate");
  const args = { gate, log };
  const before = await httpProcess(home);

  const draftId = "the draft's own id";
  const draft = await session(before.url);
  draft
    .request("tools/call", { name: "command", arguments: args, _meta: { [DRAFT_TASK]: { taskId: draftId } } })
    .catch(() => {});
  await draft.until(() => draft.notifications.find(({ method }) => method === "notifications/tasks/created"));
  const id2025 = await start2025(await session(before.url), "command", args);
  const call = { name: "command", arguments: args };
  const id2026 = (await modernRequest(before.url, "tools/call", call)).result.taskId;
  const begun = () => readFileSync(log, "utf8").trim().split("\n");
  await until(() => expect(begun()).toHaveLength(3));

  await before.kill();
  const after = await httpProcess(home);
  const meta = { [DRAFT_RELATED]: { taskId: draftId } };
  const { client: newDraft, shapes: draftShapes } = await rawClient(
    new StreamableHTTPClientTransport(new URL(after.url)),
  );
  const { client: new2025, shapes: shapes2025 } = await rawClient(
    new StreamableHTTPClientTransport(new URL(after.url)),
    "2025-11-25",
  );
  const get2026 = async () => (await modernRequest(after.url, "tasks/get", { taskId: id2026 })).result;
  const getDraft = async () => (await newDraft.request("tasks/get", { taskId: draftId, _meta: meta })).result;
  expect((await getDraft()).status).toBe("working");
  expect((await new2025.request("tasks/get", { taskId: id2025 })).result.status).toBe("working");
  expect((await get2026()).status).toBe("working");

  open(gate);
  expect(textOf((await new2025.request("tasks/result", { taskId: id2025 })).result)).toContain("all done");
  await until(async () => expect((await getDraft()).status).toBe("completed"));
  const drafted = await newDraft.request("tasks/result", { taskId: draftId, _meta: meta });
  expect(textOf(drafted.result)).toContain("all done");
  await until(async () => expect((await get2026()).status).toBe("completed"));
  expect(textOf((await get2026()).result)).toContain("all done");
  expect(new Set(begun()).size).toBe(3);
  expect(begun()).toHaveLength(3);
  expect([...draftShapes.misfits, ...shapes2025.misfits]).toEqual([]);
}, 30_000);

test("kill -9 loses no answered question, no cancel and no idempotency key", async () => {
  const home = await tempDir();
  const first = await httpProcess(home);
  const call = {
    name: "at_engine",
    arguments: { label: "one" },
    _meta: { "taskferry.dev/idempotency-key": "k" },
  };
  const { taskId } = (await modernRequest(first.url, "tools/call", call)).result;
  const held = (await modernRequest(first.url, "tools/call", { name: "asks_first", arguments: {} })).result;
  await modernRequest(first.url, "tasks/cancel", { taskId });
  await first.kill();

  const second = await httpProcess(home);
  expect((await modernRequest(second.url, "tools/call", call)).result.taskId).toBe(taskId);
  const answer = { name: "task_answer", arguments: { taskId: held.taskId, content: { to: "Rome" } } };
  await modernRequest(second.url, "tools/call", answer);
  const get = async (id: string) => (await modernRequest(second.url, "tasks/get", { taskId: id })).result;
  await until(async () => expect((await get(taskId)).status).toBe("cancelled"));
  await until(async () => expect((await get(held.taskId)).status).toBe("completed"));
  expect(calls(home, "engine", "run")).toHaveLength(1);
}, 20_000);

test("SIGTERM: streams end, the process exits 0, and the run goes on without it", async () => {
  const home = await tempDir();
  const server = await httpProcess(home);
  const { result } = await modernRequest(server.url, "tools/call", {
    name: "at_engine",
    arguments: { label: "goes on" },
  });
  const waiting = await session(server.url);
  waiting.request("tasks/result", { taskId: result.taskId }).catch(() => {});
  expect(await server.kill("SIGTERM")).toBe(0);
  expect(server.stderr).toContain("Closed");
  const [run] = calls(home, "engine", "run");
  expect(calls(home, "engine", "stop")).toEqual([]);
  endRun(home, "engine", run!.key);
  const next = await httpProcess(home);
  await until(async () => {
    const { result: task } = await modernRequest(next.url, "tasks/get", { taskId: result.taskId });
    expect(task.status).toBe("completed");
  });
}, 20_000);

test("a stdio server ends by itself, with 0, when its host closes the pipe or says SIGTERM", async () => {
  const [byPipe, bySignal] = [stdioProcess(await tempDir()), stdioProcess(await tempDir())];
  const hello = (server: ReturnType<typeof stdioProcess>) => {
    const params = {
      protocolVersion: "2025-11-25",
      capabilities: {},
      clientInfo: { name: "raw", version: "0" },
    };
    server.child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params })}\n`);
    return until(() => expect(server.stdout).toContain('"serverInfo"'));
  };
  await Promise.all([hello(byPipe), hello(bySignal)]);
  byPipe.child.stdin.end();
  bySignal.child.kill("SIGTERM");
  await until(() => expect([byPipe.child.exitCode, bySignal.child.exitCode]).toEqual([0, 0]));
}, 20_000);

test("undeclared clients hear -32021 for a task that another server made", async () => {
  const home = await tempDir();
  const first = await httpProcess(home);
  const call = { name: "echo", arguments: { text: "there" } };
  const { taskId } = (await modernRequest(first.url, "tools/call", call, { capabilities: TASKS })).result;
  await first.kill();
  const second = await httpProcess(home);
  const { error } = await modernRequest(second.url, "tasks/get", { taskId }, { capabilities: {} });
  expect(error?.code).toBe(-32021);
}, 20_000);
