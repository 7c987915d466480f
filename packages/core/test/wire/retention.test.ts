/** How long a task is kept, as each generation says it: keepAlive from its end, ttl and ttlMs from its creation. */
import { expect, test } from "vitest";
import { LOCAL_OWNER } from "../../src/contract/owner.js";
import type { Generation } from "../../src/contract/task.js";
import { type Json, modernRequest } from "../support/raw-client.js";
import { DRAFT_RELATED, DRAFT_TASK, RELATED, stateless } from "../support/sessions.js";
import { RETENTION, wireServer } from "../support/wire-server.js";

const server = wireServer();

async function told(taskId: string) {
  const meta = (key: string) => ({ taskId, _meta: { [key]: { taskId } } });
  const [draft, legacy, modern] = await Promise.all([
    stateless(server.url, "tasks/get", meta(DRAFT_RELATED)),
    stateless(server.url, "tasks/get", meta(RELATED)),
    modernRequest(server.url, "tasks/get", { taskId }),
  ]);
  return { keepAlive: draft.result.keepAlive, ttl: legacy.result.ttl, ttlMs: modern.result.ttlMs };
}

async function lifetime(taskId: string): Promise<number> {
  const { task } = await server.engine.peek(LOCAL_OWNER, taskId);
  return task.endedAt! - task.createdAt;
}

for (const maker of ["draft", "2025-11-25", "2026-07-28"] as const satisfies readonly Generation[]) {
  test(`${maker}: a running task has no ttl, and a finite keepAlive`, async () => {
    const taskId = await server.task(maker, "working", 30_000);
    expect(await told(taskId)).toEqual({ keepAlive: 30_000, ttl: null, ttlMs: null });
  });

  for (const [what, asked, kept] of [
    ["nothing asked for: the default", undefined, RETENTION.defaultMs],
    ["as asked", 120_000, 120_000],
    ["over the maximum: the maximum", 10_000_000, RETENTION.maxMs],
  ] as const) {
    test(`${maker}: an ended task: ${what}`, async () => {
      const taskId = await server.task(maker, "completed", asked);
      const ttl = (await lifetime(taskId)) + kept;
      expect(await told(taskId)).toEqual({ keepAlive: kept, ttl, ttlMs: ttl });
      expect(Number.isInteger(ttl)).toBe(true);
    });
  }

  test(`${maker}: nothing is kept, as asked: who sees it end is told, who comes later is not`, async () => {
    const taskId = await server.task(maker, "completed", 0);
    const { error } = await modernRequest(server.url, "tasks/get", { taskId });
    expect(error).toEqual({ code: -32602, message: "Failed to retrieve task: Task has expired" });
  });
}

const call = (params: Json) =>
  stateless(server.url, "tools/call", { name: "states", arguments: { state: "completed" }, ...params });

/** How a client of the 2025 era asks, and what it hears of it. */
const ways = {
  "ttl of 2025-11-25": async (wanted: Json) => {
    const { result, error } = await call({ task: { ttl: wanted } });
    return { error, taskId: result?.task.taskId };
  },
  "keepAlive of the draft": async (wanted: Json) => {
    const taskId = `kept-${crypto.randomUUID()}`;
    const { error } = await call({ _meta: { [DRAFT_TASK]: { taskId, keepAlive: wanted } } });
    return { error, taskId };
  },
};

for (const [way, request] of Object.entries(ways)) {
  for (const [asked, kept] of [
    [null, RETENTION.defaultMs],
    [90_000, 90_000],
    [90_000.9, 90_000],
    [RETENTION.maxMs + 1, RETENTION.maxMs],
    [Number.MAX_VALUE, RETENTION.maxMs],
  ] as const) {
    test(`${way} ${asked} is kept for ${kept}, and told so in every generation`, async () => {
      const { taskId } = await request(asked);
      await expect.poll(async () => (await told(taskId)).ttl, { interval: 10 }).not.toBeNull();
      const ttl = (await lifetime(taskId)) + kept;
      expect(await told(taskId)).toEqual({ keepAlive: kept, ttl, ttlMs: ttl });
    });
  }

  for (const asked of [-1, "1000", true, {}, []]) {
    test(`${way} ${JSON.stringify(asked)} is refused`, async () => {
      const { error } = await request(asked);
      expect(error).toMatchObject({ code: -32602, message: expect.stringContaining("milliseconds") });
    });
  }
}

test("2026-07-28 cannot ask: a ttl in its request changes nothing", async () => {
  const { result } = await modernRequest(server.url, "tools/call", {
    name: "states",
    arguments: { state: "completed" },
    task: { ttl: 90_000 },
  });
  await expect.poll(async () => (await told(result.taskId)).ttlMs, { interval: 10 }).not.toBeNull();
  expect((await told(result.taskId)).keepAlive).toBe(RETENTION.defaultMs);
});
