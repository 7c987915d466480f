/** One task, said in three ways: statuses, results and shapes, whoever made it and whoever asks. */
import * as v1 from "@modelcontextprotocol/ext-tasks/core/v1";
import * as v2 from "@modelcontextprotocol/ext-tasks/core/v2";
import { describe, expect, test } from "vitest";
import type { Generation } from "../../src/contract/task.js";
import { DraftGetResult, DraftRelatedResult } from "../support/draft-schemas.js";
import { type Json, modernRequest, type RawClient, TASKS } from "../support/raw-client.js";
import { DRAFT_RELATED, FORMS, RELATED, session, start2025, stateless } from "../support/sessions.js";
import { type StateName, wireServer } from "../support/wire-server.js";

const server = wireServer();

const MAKERS: readonly Generation[] = ["draft", "2025-11-25", "2026-07-28"];

/** The table of protocol.md, and what `tasks/result` answers: a result, or an error code. */
const PROJECTION: Record<
  StateName,
  Record<Generation, string> & { result: Record<"draft" | "2025", "result" | number> }
> = {
  submitted: {
    draft: "submitted",
    "2025-11-25": "working",
    "2026-07-28": "working",
    result: { draft: -32602, "2025": 0 },
  },
  working: {
    draft: "working",
    "2025-11-25": "working",
    "2026-07-28": "working",
    result: { draft: -32602, "2025": 0 },
  },
  input_required: {
    draft: "input_required",
    "2025-11-25": "input_required",
    "2026-07-28": "input_required",
    result: { draft: -32602, "2025": 0 },
  },
  completed: {
    draft: "completed",
    "2025-11-25": "completed",
    "2026-07-28": "completed",
    result: { draft: "result", "2025": "result" },
  },
  isError: {
    draft: "completed",
    "2025-11-25": "failed",
    "2026-07-28": "completed",
    result: { draft: "result", "2025": "result" },
  },
  failed: {
    draft: "failed",
    "2025-11-25": "failed",
    "2026-07-28": "failed",
    result: { draft: -32602, "2025": -32603 },
  },
  cancelled: {
    draft: "cancelled",
    "2025-11-25": "cancelled",
    "2026-07-28": "cancelled",
    result: { draft: -32602, "2025": -32000 },
  },
  unknown: {
    draft: "unknown",
    "2025-11-25": "failed",
    "2026-07-28": "failed",
    result: { draft: -32602, "2025": -32603 },
  },
};

const asDraft = (method: string, taskId: string) =>
  stateless(server.url, method, { taskId, _meta: { [DRAFT_RELATED]: { taskId } } });
const as2025 = (method: string, taskId: string) =>
  stateless(server.url, method, { taskId, _meta: { [RELATED]: { taskId } } });
const as2026 = (taskId: string, capabilities: Json = { ...FORMS, ...TASKS }) =>
  modernRequest(server.url, "tasks/get", { taskId }, { capabilities });

for (const maker of MAKERS) {
  describe(`made in ${maker}`, () => {
    for (const [state, wanted] of Object.entries(PROJECTION) as [
      StateName,
      (typeof PROJECTION)[StateName],
    ][]) {
      test(`${state} is told in each generation's own words`, async () => {
        const taskId = await server.task(maker, state);
        const draft = DraftGetResult.parse((await asDraft("tasks/get", taskId)).result);
        expect(draft.status).toBe(wanted.draft);
        const legacy = v1.GetTaskResultV1Schema.parse((await as2025("tasks/get", taskId)).result);
        expect(legacy.status).toBe(wanted["2025-11-25"]);
        expect(Date.parse(legacy.createdAt)).not.toBeNaN();
        expect("keepAlive" in legacy).toBe(false);
        const modern = v2.GetTaskResultV2Schema.parse((await as2026(taskId)).result) as Json;
        expect(modern.status).toBe(wanted["2026-07-28"]);
        expect("result" in modern).toBe(wanted["2026-07-28"] === "completed");
        expect("error" in modern).toBe(wanted["2026-07-28"] === "failed");
        expect("inputRequests" in modern).toBe(wanted["2026-07-28"] === "input_required");
      });

      test(`${state}: what tasks/result answers in each generation`, async () => {
        const taskId = await server.task(maker, state);
        const draft = await asDraft("tasks/result", taskId);
        if (wanted.result.draft === "result") DraftRelatedResult.parse(draft.result);
        else expect(draft.error).toMatchObject({ code: wanted.result.draft });
        // A running task's result is waited for in 2025-11-25.
        if (wanted.result["2025"] === 0) return;
        const legacy = await as2025("tasks/result", taskId);
        if (wanted.result["2025"] === "result") {
          v1.CallToolResultV1Schema.parse(legacy.result);
          expect(legacy.result._meta).toEqual({ [RELATED]: { taskId } });
          expect(legacy.result.isError === true).toBe(state === "isError");
        } else expect(legacy.error).toMatchObject({ code: wanted.result["2025"] });
      });
    }

    test("the result is the same for all who ask", async () => {
      for (const state of ["completed", "isError"] as const) {
        const taskId = await server.task(maker, state);
        const { _meta: d, ...draft } = (await asDraft("tasks/result", taskId)).result;
        const { _meta: l, ...legacy } = (await as2025("tasks/result", taskId)).result;
        const { resultType, ...modern } = (await as2026(taskId)).result.result;
        expect(legacy).toEqual(draft);
        expect(modern).toEqual(draft);
        expect(resultType).toBe("complete");
      }
    });

    test("may be cancelled in 2025-11-25 and deleted in the draft", async () => {
      const taskId = await server.task(maker, "working");
      const cancelled = v1.CancelTaskResultV1Schema.parse((await as2025("tasks/cancel", taskId)).result);
      expect(cancelled.status).toBe("cancelled");
      expect((await as2026(taskId)).result.status).toBe("cancelled");
      const ended = await server.task(maker, "completed");
      expect((await asDraft("tasks/delete", ended)).error).toBeUndefined();
      expect((await as2026(ended)).error).toMatchObject({ code: -32602 });
    });

    test("an error says the same to all: the draft as text, the others as JSON-RPC errors", async () => {
      const taskId = await server.task(maker, "failed");
      const { error } = (await asDraft("tasks/get", taskId)).result;
      expect(error).toContain("not yours");
      expect((await as2025("tasks/result", taskId)).error).toMatchObject({ code: -32603, message: error });
      expect((await as2026(taskId)).result.error).toMatchObject({ code: -32603, message: error });
    });
  });
}

describe("who asks is told by", () => {
  const isDraft = (result: Json) => DraftGetResult.safeParse({ _meta: undefined, ...result }).success;
  const is2025 = (result: Json) =>
    v1.GetTaskResultV1Schema.safeParse(result).success &&
    !("keepAlive" in result) &&
    result._meta === undefined;
  const get = async (client: RawClient, taskId: string, meta?: Json) =>
    (await client.request("tasks/get", { taskId, ...(meta && { _meta: meta }) })).result;

  test("the related-task meta of the request, before all else", async () => {
    const taskId = await server.task("2025-11-25", "submitted");
    const client = await session(server.url);
    await start2025(client, "plain");
    expect(isDraft(await get(client, taskId, { [DRAFT_RELATED]: { taskId } }))).toBe(true);
    expect(is2025(await get(client, taskId, { [RELATED]: { taskId } }))).toBe(true);
  });

  test("what the session has spoken, where the request says nothing", async () => {
    const ofDraft = await server.task("draft", "submitted");
    const client = await session(server.url);
    await start2025(client, "plain");
    const told = await get(client, ofDraft);
    expect(is2025(told)).toBe(true);
    expect(told.status).toBe("working");
  });

  test("what made the task, where nothing else tells", async () => {
    const ofDraft = await server.task("draft", "submitted");
    const of2025 = await server.task("2025-11-25", "submitted");
    const of2026 = await server.task("2026-07-28", "submitted");
    const client = await session(server.url);
    const told = await get(client, ofDraft);
    expect(isDraft(told)).toBe(true);
    expect(told.status).toBe("submitted");
    expect(is2025(await get(client, of2025))).toBe(true);
    expect(is2025(await get(client, of2026))).toBe(true);
    const poll = await stateless(server.url, "tasks/get", { taskId: ofDraft });
    expect(isDraft(poll.result)).toBe(true);
  });

  test("tasks/list without evidence carries the fields of both, and statuses of 2025-11-25", async () => {
    const taskIds = await Promise.all(
      (["submitted", "isError", "unknown"] as const).map((state) => server.task("draft", state)),
    );
    const { result } = await stateless(server.url, "tasks/list");
    v1.ListTasksResultV1Schema.parse(result);
    const entries = taskIds.map((id) => result.tasks.find(({ taskId }: Json) => taskId === id));
    expect(entries.map(({ status }) => status)).toEqual(["working", "failed", "failed"]);
    for (const entry of entries) {
      expect(entry).toMatchObject({
        keepAlive: 60_000,
        pollFrequency: 10,
        createdAt: expect.any(String),
        lastUpdatedAt: expect.any(String),
        pollInterval: 10,
      });
      expect("ttl" in entry).toBe(true);
    }
  });

  test("a client of 2026-07-28 that cannot be asked sees a task that asks as working, and is told why", async () => {
    const taskId = await server.task("draft", "input_required");
    const { result } = await as2026(taskId, TASKS);
    v2.GetTaskResultV2Schema.parse(result);
    expect(result).toMatchObject({ status: "working", statusMessage: expect.stringContaining('"Who?"') });
    expect("inputRequests" in result).toBe(false);
  });
});
