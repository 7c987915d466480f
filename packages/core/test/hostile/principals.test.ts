/** Who may come in over HTTP, and what they may see: bearer tokens, owners, sessions, hosts and origins. */
import { request as httpRequest } from "node:http";
import { describe, expect, test } from "vitest";
import { type Json, modernRequest, TASKS } from "../support/raw-client.js";
import { fixtureEngine, modern, overHttp } from "../support/serving.js";
import { DRAFT_RELATED, DRAFT_TASK, session, start2025, stateless } from "../support/sessions.js";

const TOKENS: Record<string, string> = { "token-of-ada": "ada", "token-of-bob": "bob" };
const bearer = (who: string) => ({ authorization: `Bearer token-of-${who}` });

async function guarded() {
  const { engine, home } = await fixtureEngine();
  const { url, port } = await overHttp(engine, {
    inlineWaitMs: 50,
    resourceMetadataUrl: "https://auth.example/.well-known/oauth-protected-resource",
    verify(token) {
      if (token === "broken") throw new Error("the key server is down, and its password is hunter2");
      const subject = TOKENS[token];
      return subject === undefined ? undefined : { issuer: "https://auth.example", subject };
    },
  });
  return { engine, home, url, port };
}

describe("without a token that is good", () => {
  test.each([
    ["none", {}],
    ["an unknown one", { authorization: "Bearer nobody" }],
    ["another scheme", { authorization: "Basic dG9rZW46b2Y=" }],
    ["an empty one", { authorization: "Bearer " }],
    ["one that the hook breaks on", { authorization: "Bearer broken" }],
  ])("%s: 401 and where to get one, for every method of HTTP", async (_what, headers) => {
    const { url } = await guarded();
    const init = {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...headers,
    };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
    for (const method of ["POST", "GET", "DELETE"]) {
      const response = await fetch(url, { method, headers: init, ...(method === "POST" && { body }) });
      expect(response.status).toBe(401);
      expect(response.headers.get("www-authenticate")).toMatch(
        /^Bearer .*resource_metadata="https:\/\/auth\.example/,
      );
      expect(await response.text()).not.toContain("hunter2");
    }
  });
});

describe("a proxy before a server that takes everyone for the person at its machine", () => {
  const listed = (url: string, headers: Record<string, string>) =>
    modernRequest(url, "tools/list", {}, { headers });

  test.each([
    ["x-forwarded-for", "203.0.113.7"],
    ["forwarded", "for=203.0.113.7"],
  ])("%s: refused, with what to do", async (name, value) => {
    const { engine } = await fixtureEngine();
    const { url } = await overHttp(engine);
    expect(await listed(url, { [name]: value })).toMatchObject({
      error: { code: -32_000, message: expect.stringContaining("verify hook") },
    });
    expect(await listed(url, {})).toHaveProperty("result");
  });

  test("is welcome where callers are told apart, or are meant to be strangers", async () => {
    const { url } = await guarded();
    expect(await listed(url, { ...bearer("ada"), "x-forwarded-for": "203.0.113.7" })).toHaveProperty(
      "result",
    );
    const { engine } = await fixtureEngine();
    const open = await overHttp(engine, { allowAnonymous: true });
    expect(await listed(open.url, { "x-forwarded-for": "203.0.113.7" })).toHaveProperty("result");
  });
});

describe("two principals", () => {
  test("see nothing of each other's tasks, by any method of any generation", async () => {
    const { url, home } = await guarded();
    const ada = await session(url, {}, bearer("ada"));
    const bob = await session(url, {}, bearer("bob"));
    const gate = `${home}/never`;
    const taskId = await start2025(ada, "waits", { gate });
    const as = (who: string, method: string, params: Json) =>
      modernRequest(url, method, params, { capabilities: TASKS, headers: bearer(who) });
    const meta = { [DRAFT_RELATED]: { taskId } };

    const attempts = [
      bob.request("tasks/get", { taskId }),
      bob.request("tasks/get", { taskId, _meta: meta }),
      bob.request("tasks/result", { taskId }),
      bob.request("tasks/result", { taskId, _meta: meta }),
      bob.request("tasks/cancel", { taskId }),
      bob.request("tasks/delete", { taskId, _meta: meta }),
      as("bob", "tasks/get", { taskId }),
      as("bob", "tasks/update", { taskId, inputResponses: {} }),
      as("bob", "tasks/cancel", { taskId }),
      ...["task_status", "task_cancel", "task_answer"].map((name) =>
        as("bob", "tools/call", { name, arguments: { taskId } }),
      ),
    ];
    for (const { error } of await Promise.all(attempts)) {
      expect(error?.code).toBe(-32602);
      expect(error?.message).toMatch(/Task not found$/);
    }
    await bob.notify("notifications/cancelled", { _meta: meta, requestId: 2 });
    expect((await bob.request("tasks/list")).result.tasks).toEqual([]);
    const listed = await as("bob", "tools/call", { name: "task_list", arguments: {} });
    expect(listed.result.structuredContent.tasks).toEqual([]);
    expect((await ada.request("tasks/get", { taskId })).result.status).toBe("working");
    expect((await ada.request("tasks/list")).result.tasks).toHaveLength(1);
    expect((await as("ada", "tasks/get", { taskId })).result.status).toBe("working");
  });

  test("the same draft id for two principals is two tasks", async () => {
    const { url, home } = await guarded();
    const call = (name: string) => ({
      name,
      arguments: name === "waits" ? { gate: `${home}/never` } : { text: "of bob" },
      _meta: { [DRAFT_TASK]: { taskId: "same" } },
    });
    const ada = await session(url, {}, bearer("ada"));
    const bob = await session(url, {}, bearer("bob"));
    ada.request("tools/call", call("waits")).catch(() => {});
    await ada.until(() => ada.notifications.find(({ method }) => method === "notifications/tasks/created"));
    expect((await bob.request("tools/call", call("echo"))).result.structuredContent).toEqual({
      text: "of bob",
    });
    const get = { taskId: "same", _meta: { [DRAFT_RELATED]: { taskId: "same" } } };
    expect((await ada.request("tasks/get", get)).result.status).toBe("working");
    expect((await bob.request("tasks/get", get)).result.status).toBe("completed");
  });

  test("a cursor of one is no cursor of the other", async () => {
    const { url } = await guarded();
    const ada = await session(url, {}, bearer("ada"));
    const bob = await session(url, {}, bearer("bob"));
    for (let count = 0; count < 51; count++) await start2025(ada, "echo", { text: "one of many" });
    const { nextCursor } = (await ada.request("tasks/list")).result;
    expect((await ada.request("tasks/list", { cursor: nextCursor })).result.tasks).toHaveLength(1);
    expect((await bob.request("tasks/list", { cursor: nextCursor })).error?.code).toBe(-32602);
  });

  test("another's session id opens no session: it is not found, and the session goes on", async () => {
    const { url, home } = await guarded();
    const ada = await session(url, {}, bearer("ada"));
    const taskId = await start2025(ada, "waits", { gate: `${home}/never` });
    const sessionId = ada.transport.sessionId!;
    const hijack = { ...bearer("bob"), "mcp-session-id": sessionId };
    const polled = await stateless(url, "tasks/get", { taskId }, hijack);
    expect(polled).toMatchObject({ status: 404, error: { code: -32001 } });
    expect(await stateless(url, "tools/list", {}, hijack)).toMatchObject({ status: 404 });
    for (const method of ["GET", "DELETE"]) {
      const response = await fetch(url, { method, headers: { ...hijack, accept: "text/event-stream" } });
      expect(response.status).toBe(404);
    }
    expect((await ada.request("tasks/get", { taskId })).result.status).toBe("working");
  });

  test("a listen tells nothing of another's task", async () => {
    const { url, home } = await guarded();
    const ada = await session(url, {}, bearer("ada"));
    const taskId = await start2025(ada, "waits", { gate: `${home}/never` });
    const abort = new AbortController();
    const response = await fetch(url, {
      method: "POST",
      signal: abort.signal,
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "subscriptions/listen",
        ...bearer("bob"),
      },
      body: JSON.stringify({
        jsonrpc: "2.0",
        id: 1,
        method: "subscriptions/listen",
        params: modern({ notifications: { taskIds: [taskId] } }, TASKS),
      }),
    });
    const { value } = await response.body!.getReader().read();
    expect(new TextDecoder().decode(value)).toContain('"taskIds":[]');
    abort.abort();
  });
});

describe("strangers", () => {
  test.each([{}, { allowedHosts: ["example.org"] }])(
    "are not served beyond loopback unasked: %j",
    async (options) => {
      const { engine } = await fixtureEngine();
      await expect(overHttp(engine, { host: "0.0.0.0", ...options })).rejects.toMatchObject({
        code: "configuration",
        message: expect.stringContaining("verify"),
      });
    },
  );

  test("who are let in have no list, no ids of their own making, and sessions of their own", async () => {
    const { engine, home } = await fixtureEngine();
    const { url } = await overHttp(engine, { allowAnonymous: true });
    const [one, other] = [await session(url, {}), await session(url, {})];
    const taskId = await start2025(one, "waits", { gate: `${home}/never` });
    expect((await other.request("tasks/get", { taskId })).error?.message).toContain("Task not found");
    expect((await stateless(url, "tasks/list")).error?.code).toBe(-32601);
    const call = { name: "echo", arguments: { text: "x" }, _meta: { [DRAFT_TASK]: { taskId: "guessable" } } };
    const { result } = await stateless(url, "tools/call", call);
    expect(result.structuredContent).toEqual({ text: "x" });
    expect(JSON.stringify(result)).not.toContain("guessable");
    expect((await stateless(url, "tasks/get", { taskId: "guessable" })).error?.code).toBe(-32602);
  });
});

test.each([
  ["a Host that is another", { host: "evil.example" }],
  ["an Origin that is another", { origin: "https://evil.example" }],
  ["an Origin of no site", { origin: "null" }],
])("%s is refused before anything is read", async (_what, headers) => {
  const { engine } = await fixtureEngine();
  const { port } = await overHttp(engine);
  const status = await new Promise<number>((resolve, reject) => {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
    const request = httpRequest(
      {
        port,
        host: "127.0.0.1",
        path: "/mcp",
        method: "POST",
        headers: {
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
          ...headers,
        },
      },
      (response) => {
        response.resume();
        resolve(response.statusCode!);
      },
    );
    request.on("error", reject).end(body);
  });
  expect(status).toBe(403);
});
