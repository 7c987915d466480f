/** Clients that know no tasks (protocol.md, "Clients that know no Tasks"): progress, handles, companions, abandoned calls. */
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { rawClient } from "../support/clients.js";
import { type Json, modernRequest, type RawClient, TASKS } from "../support/raw-client.js";
import { open } from "../support/server-process.js";
import { fixtureEngine, modern, modernPipe, overHttp, overStdio } from "../support/serving.js";
import { session, stateless, textOf } from "../support/sessions.js";

const LOCAL = { id: "local", kind: "local", limitKey: "local" } as const;

async function served(inlineWaitMs = 10_000) {
  const { engine, home } = await fixtureEngine();
  const { url } = await overHttp(engine, { inlineWaitMs });
  const tasks = async () => (await engine.list(LOCAL, undefined)).views.map(({ task }) => task);
  const only = async () => (await tasks())[0]!;
  return { engine, home, url, gate: join(home, "gate"), tasks, only };
}

const progressOf = (client: RawClient): Json[] =>
  client.notifications
    .filter(({ method }) => method === "notifications/progress")
    .map(({ params }) => params);

describe("a call that ends in time", () => {
  test("is answered with the real result, over everything", async () => {
    const { engine, url } = await served();
    const call = { name: "echo", arguments: { text: "hi" } };
    const stdio = await rawClient(overStdio(engine).transport, "2025-11-25");
    const pipe = await modernPipe(overStdio(engine).transport);
    const replies = await Promise.all([
      (await session(url)).request("tools/call", call),
      stateless(url, "tools/call", call),
      modernRequest(url, "tools/call", call, { capabilities: {} }),
      stdio.client.request("tools/call", call),
      pipe.request("tools/call", modern(call, {})),
    ]);
    for (const { result } of replies) {
      expect(result.structuredContent).toEqual({ text: "hi" });
      expect(result.taskId).toBeUndefined();
      expect(result.task).toBeUndefined();
    }
  });

  test("a workflow that ran and failed is an error result, one that could not be carried out an error", async () => {
    const { url } = await served();
    const failed = await stateless(url, "tools/call", { name: "fails", arguments: {} });
    expect(failed.result).toMatchObject({ isError: true });
    expect(textOf(failed.result)).toContain("it went wrong");
    const refused = await stateless(url, "tools/call", { name: "refuses", arguments: {} });
    expect(refused.error).toMatchObject({ code: -32603 });
    expect(refused.error?.message).toContain("there is no such thing here");
  });

  test("progress grows with every notification, and none comes without a token", async () => {
    const { url, gate } = await served();
    const client = await session(url);
    const call = client.request("tools/call", {
      name: "gated",
      arguments: { gate },
      _meta: { progressToken: "t" },
    });
    await client.until(() => progressOf(client).some(({ message }) => message === "one of three"));
    open(`${gate}.1`);
    await client.until(() => progressOf(client).some(({ message }) => message === "two of three"));
    open(gate);
    expect((await call).result.structuredContent).toEqual({ opened: "yes" });
    const told = progressOf(client);
    for (const note of told) expect(note.progressToken).toBe("t");
    const values = told.map(({ progress }) => progress);
    expect(values).toEqual([...new Set(values)].sort((a, b) => a - b));
    expect(told.at(-1)).toMatchObject({ progress: 2, total: 3 });

    const silent = await session(url);
    await silent.request("tools/call", { name: "gated", arguments: { gate } });
    expect(progressOf(silent)).toEqual([]);
  });
});

describe("a server that closes while calls wait", () => {
  test("answers each with the handle of its task: the client can ask the next server", async () => {
    const { engine, home } = await fixtureEngine();
    const server = await overHttp(engine);
    const { url } = server;
    const call = { name: "gated", arguments: { gate: join(home, "gate") } };
    const client = await session(url);
    const replies = Promise.all([
      client.request("tools/call", call),
      stateless(url, "tools/call", call),
      modernRequest(url, "tools/call", call, { capabilities: {} }),
    ]);
    await expect
      .poll(async () => (await engine.list(LOCAL, undefined)).views.map(({ task }) => task.status))
      .toEqual(["working", "working", "working"]);
    await server.close();
    for (const { result } of await replies) {
      expect(result.structuredContent.task).toMatchObject({ status: "working" });
      expect((await engine.get(LOCAL, result.structuredContent.task.taskId)).task.workflow).toBe("gated");
    }
  });
});

describe("a call that does not end in time", () => {
  test("is answered with a handle in words and as data, and the companions do the rest", async () => {
    const { url, gate } = await served(30);
    const client = await session(url, {});
    const { tools } = (await client.request("tools/list")).result;
    const companions = ["task_status", "task_answer", "task_cancel", "task_list"];
    expect(tools.map(({ name }: Json) => name)).toEqual(expect.arrayContaining(companions));
    const call = async (name: string, args: Json) =>
      (await client.request("tools/call", { name, arguments: args })).result;

    const handle = await call("gated", { gate });
    const { taskId, status } = handle.structuredContent.task;
    expect(status).toBe("working");
    expect(textOf(handle)).toContain(taskId);
    expect(textOf(handle)).toContain("task_status");
    expect(handle.isError).toBeUndefined();

    const again = await call("task_status", { taskId });
    expect(again.structuredContent.task).toMatchObject({ taskId, status: "working" });
    const listed = await call("task_list", {});
    expect(listed.structuredContent.tasks).toEqual([expect.objectContaining({ taskId, tool: "gated" })]);
    open(gate);
    const end = await call("task_status", { taskId, waitSeconds: 20 });
    expect(end.structuredContent).toEqual({ opened: "yes" });

    const second = (await call("waits", { gate: "/never" })).structuredContent.task.taskId;
    await call("task_cancel", { taskId: second });
    expect(textOf(await call("task_status", { taskId: second, waitSeconds: 10 }))).toContain("cancelled");
  });

  test.each([
    ["task_status", { taskId: "unknown" }],
    ["task_cancel", { taskId: "unknown" }],
    ["task_answer", { taskId: "unknown" }],
    ["task_status", {}],
    ["task_status", { taskId: 5 }],
    ["task_status", { taskId: "unknown", waitSeconds: 1e9 }],
    ["task_list", { cursor: "made up" }],
  ])("%s(%j) is -32602, with a message that says why", async (name, args) => {
    const { url } = await served();
    const { error } = await stateless(url, "tools/call", { name, arguments: args });
    expect(error?.code).toBe(-32602);
    expect(error?.message).toMatch(/not found|Invalid/);
  });

  test("companions can be switched off", async () => {
    const { engine } = await served();
    const { url } = await overHttp(engine, { companions: false });
    const { result } = await stateless(url, "tools/list");
    expect(result.tools.map(({ name }: Json) => name)).not.toContain("task_status");
    const { error } = await stateless(url, "tools/call", { name: "task_list", arguments: {} });
    expect(error?.code).toBe(-32602);
  });
});

/** Every way in which a caller can leave, and where it waits meanwhile. */
const LEAVINGS: [string, (face: Awaited<ReturnType<typeof served>>, call: Json) => Promise<() => unknown>][] =
  [
    [
      "2025: cancels in its session",
      async ({ url }, call) => {
        const client = await session(url);
        const { id, reply } = client.send("tools/call", call);
        reply.catch(() => {});
        return () => client.notify("notifications/cancelled", { requestId: id, reason: "too slow" });
      },
    ],
    [
      "2025: closes its session's stream",
      async ({ url }, call) => {
        const client = await session(url);
        client.request("tools/call", call).catch(() => {});
        return () => client.close();
      },
    ],
    [
      "2025: hangs up without a session",
      async ({ url }, call) => {
        const abort = new AbortController();
        const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: call });
        const headers = {
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
          "mcp-protocol-version": "2025-11-25",
        };
        fetch(url, { method: "POST", body, headers, signal: abort.signal })
          .then((response) => response.text())
          .catch(() => {});
        return () => abort.abort();
      },
    ],
    [
      "2026: hangs up",
      async ({ url }, call) => {
        const abort = new AbortController();
        const headers = {
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
          "mcp-protocol-version": "2026-07-28",
          "mcp-method": "tools/call",
          "mcp-name": call.name,
        };
        const body = JSON.stringify({
          jsonrpc: "2.0",
          id: 1,
          method: "tools/call",
          params: modern(call, {}),
        });
        fetch(url, { method: "POST", body, headers, signal: abort.signal })
          .then((response) => response.text())
          .catch(() => {});
        return () => abort.abort();
      },
    ],
    [
      "2025: cancels over stdio",
      async ({ engine }, call) => {
        const { client } = await rawClient(overStdio(engine, { inlineWaitMs: 10_000 }).transport);
        const { id } = client.send("tools/call", call);
        return () => client.notify("notifications/cancelled", { requestId: id });
      },
    ],
    [
      "2026: cancels over stdio",
      async ({ engine }, call) => {
        const client = await modernPipe(overStdio(engine, { inlineWaitMs: 10_000 }).transport);
        const { id } = client.send("tools/call", modern(call, {}));
        return () => client.notify("notifications/cancelled", modern({ requestId: id }, {}));
      },
    ],
    [
      "2025: its host ends",
      async ({ engine }, call) => {
        const { client } = await rawClient(overStdio(engine, { inlineWaitMs: 10_000 }).transport);
        client.send("tools/call", call);
        return () => client.close();
      },
    ],
  ];

describe.each(LEAVINGS)("a caller that leaves: %s", (_what, begin) => {
  test("leaves the run going", async () => {
    const face = await served();
    const leave = await begin(face, { name: "waits", arguments: { gate: face.gate } });
    await expect.poll(async () => (await face.tasks()).length).toBe(1);
    await expect.poll(async () => (await face.only()).startPhase).toBe("bound");
    await leave();
    const { taskId } = await face.only();
    open(face.gate);
    // Ended by itself: a stop would have made it cancelled.
    await expect
      .poll(async () => (await face.engine.get(LOCAL, taskId)).task.status, { timeout: 5_000 })
      .toBe("completed");
    expect((await face.only()).cancelRequestedAt).toBeNull();
  });

  test("stops the run where the workflow says so", async () => {
    const face = await served();
    const leave = await begin(face, { name: "stops_with_its_caller", arguments: { gate: face.gate } });
    await expect.poll(async () => (await face.tasks()).length).toBe(1);
    await expect.poll(async () => (await face.only()).startPhase).toBe("bound");
    await leave();
    const { taskId } = await face.only();
    await expect
      .poll(async () => (await face.engine.get(LOCAL, taskId)).task.status, { timeout: 5_000 })
      .toBe("cancelled");
  });
});

test("a task of 2025-11-25 or 2026-07-28 goes on when its creator leaves, whatever the workflow says", async () => {
  const { url, gate, engine } = await served();
  const client = await session(url);
  const call = { name: "stops_with_its_caller", arguments: { gate } };
  const { id, reply } = client.send("tools/call", { ...call, task: {} });
  const { taskId } = (await reply).result.task;
  const { result } = await modernRequest(url, "tools/call", call, { capabilities: TASKS });
  await client.notify("notifications/cancelled", { requestId: id });
  await client.close();
  open(gate);
  for (const made of [taskId, result.taskId]) {
    await expect.poll(async () => (await engine.get(LOCAL, made)).task.status).toBe("completed");
  }
});
