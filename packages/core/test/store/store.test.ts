/** What the engine relies on, on both databases. */
import { describe, expect, test } from "vitest";
import { mayBecome, type Task, type TaskStatus } from "../../src/contract/task.js";
import { databases, freshStore } from "./databases.js";
import { CREATED, row } from "./rows.js";

const STATUSES: readonly TaskStatus[] = [
  "submitted",
  "working",
  "input_required",
  "completed",
  "failed",
  "cancelled",
  "unknown",
];
const LEASE = { holder: "a", now: 1000, until: 2000 };

for (const database of databases()) {
  const fresh = () => freshStore(database);

  describe(`${database.name}: rows`, { timeout: 30_000 }, () => {
    test("a task comes back as it was stored, JSON, NUL bytes and lone surrogates included", async () => {
      const { store } = await fresh();
      for (const taskId of [
        "plain",
        "nul\u0000",
        "lone\ud800",
        "lone\udc00",
        "\u0001escaped",
        "ü/ä😀",
        "a b\n",
      ]) {
        const task = row({
          taskId,
          owner: `o${taskId}`,
          input: { deep: [1, null, "\u0000"] },
          progress: { done: 1, total: 3 },
          runRef: { b: 1, a: [2] },
          seen: true,
        });
        await store.insert(task, CREATED);
        expect(await store.get(task.owner, taskId)).toEqual({
          ...task,
          version: 1,
          leaseHolder: null,
          leaseUntil: null,
        });
      }
      expect(await store.get("o", "lone\ufffd")).toBeUndefined();
    });

    test("the same id may be taken once by each owner", async () => {
      const { store } = await fresh();
      await store.insert(row({ taskId: "t" }), CREATED);
      await store.insert(row({ taskId: "t", owner: "bob" }), CREATED);
      await expect(store.insert(row({ taskId: "t" }), CREATED)).rejects.toMatchObject({
        code: "task_exists",
      });
      expect(await store.list("ann", { limit: 10 })).toHaveLength(1);
    });

    test("an idempotency key is unique per owner", async () => {
      const { store } = await fresh();
      const first = await store.insert(row({ idempotencyKey: "k" }), CREATED);
      await store.insert(row({ idempotencyKey: "k", owner: "bob" }), CREATED);
      await expect(store.insert(row({ idempotencyKey: "k" }), CREATED)).rejects.toMatchObject({
        code: "idempotency_conflict",
        data: { taskId: first.taskId },
      });
      expect(await store.findByIdempotencyKey("ann", "k")).toEqual(first);
    });

    test("a claim is held by one task of an engine at a time", async () => {
      const { store } = await fresh();
      const first = await store.insert(row(), CREATED);
      const second = await store.insert(row(), CREATED);
      const elsewhere = await store.insert(row({ engine: "other" }), CREATED);
      await store.update(first, { claim: "run-1" });
      await store.update(elsewhere, { claim: "run-1" });
      await expect(store.update(second, { claim: "run-1" })).rejects.toMatchObject({ code: "task_exists" });
      expect(await store.isClaimed("fake", "run-1", second)).toBe(true);
      expect(await store.isClaimed("fake", "run-1", first)).toBe(false);
    });

    test("tasks are found by request, by run, and counted while they run or owe a stop", async () => {
      const { store } = await fresh();
      await store.insert(row({ connection: "c", requestId: "1", createdAt: 1 }), CREATED);
      const newer = await store.insert(
        row({ connection: "c", requestId: "1", createdAt: 2, runRef: { b: 1, a: 2 } }),
        CREATED,
      );
      expect(await store.findByRequest("ann", "c", "1")).toEqual(newer);
      expect(await store.findByRequest("bob", "c", "1")).toBeUndefined();
      expect(await store.findByRun("fake", '{"a":2,"b":1}')).toEqual([newer]);
      expect(await store.countActive("ann", 9)).toBe(2);
      const ended = await store.update(newer, { status: "cancelled", endedAt: 3, cancelRequestedAt: 3 });
      expect(await store.countActive("ann", 9)).toBe(2);
      await store.update(ended, { cancelConfirmedAt: 4 });
      expect(await store.countActive("ann", 9)).toBe(1);
      const counts = await store.countByStatus();
      expect(counts).toContainEqual({ status: "cancelled", engine: "fake", count: 1 });
    });

    test("pages are whole and in order, also where creation times are equal", async () => {
      const { store } = await fresh();
      const ids = ["e", "a", "d", "b", "c"];
      for (const taskId of ids)
        await store.insert(row({ taskId, createdAt: taskId === "e" ? 2 : 1 }), CREATED);
      const seen: string[] = [];
      let after: { createdAt: number; taskId: string } | undefined;
      for (;;) {
        const page = await store.list("ann", { limit: 2, ...(after && { after }) });
        seen.push(...page.map((task) => task.taskId));
        const last = page.at(-1);
        if (page.length < 2 || last === undefined) break;
        after = last;
      }
      expect(seen).toEqual(["e", "a", "b", "c", "d"]);
    });
  });

  describe(`${database.name}: changes`, { timeout: 30_000 }, () => {
    test("a stale version is refused, and nothing of the change remains", async () => {
      const { store } = await fresh();
      const task = await store.insert(row(), CREATED);
      const changed = await store.update(task, { message: "one" }, { events: [{ type: "first" }] });
      const late = { questions: { open: [{ key: "q", message: "?" }] }, events: [{ type: "late" }] };
      await expect(store.update(task, { message: "two" }, late)).rejects.toMatchObject({
        code: "stale_version",
        retryable: true,
      });
      expect(await store.get(task.owner, task.taskId)).toEqual(changed);
      expect(await store.questions(task.owner, task.taskId)).toEqual([]);
      const types = (await store.events({ limit: 10 })).map((event) => event.type);
      expect(types).toEqual(["task.created", "first"]);
    });

    test("nobody reads what a transaction has written and then takes back", async () => {
      const { store } = await fresh();
      const task = await store.insert(row(), CREATED);
      let over = false;
      // The event comes last, and cannot be written.
      const broken = [{ type: "broken", detail: { big: 1n as never } }];
      const write = async () => {
        for (let i = 0; i < 30; i++) {
          const change = store.update(task, { message: "never" }, { events: broken });
          await expect(change).rejects.toThrow(TypeError);
        }
      };
      const seen = new Set<string | null | undefined>();
      const get = async () => {
        while (!over) seen.add((await store.get("ann", task.taskId))?.message);
      };
      const list = async () => {
        while (!over) for (const { message } of await store.list("ann", { limit: 1 })) seen.add(message);
      };
      const readers = [get(), list()];
      await Promise.all([write(), write(), write()]).finally(() => {
        over = true;
      });
      await Promise.all(readers);
      expect(seen).toEqual(new Set([null]));
    });

    test("every pair of statuses: what the founding document allows, and nothing else", async () => {
      const { store } = await fresh();
      for (const from of STATUSES) {
        for (const to of STATUSES) {
          const ended = ["completed", "failed", "cancelled", "unknown"].includes(from);
          const task = await store.insert(row({ status: from, endedAt: ended ? 1 : null }), CREATED);
          const change = store.update(task, { status: to });
          if (mayBecome(from, to)) expect((await change).status).toBe(to);
          else await expect(change, `${from} → ${to}`).rejects.toMatchObject({ code: "illegal_transition" });
        }
      }
    });

    test("an ended task keeps its outcome even from a caller that lies about what it has read", async () => {
      const { store } = await fresh();
      const task = await store.insert(row(), CREATED);
      const ended = await store.update(task, {
        status: "completed",
        outcome: { kind: "cancelled" },
        endedAt: 5,
      });
      const lie: Task = { ...ended, status: "working", endedAt: null };
      await expect(store.update(lie, { status: "failed" })).rejects.toThrow();
      await expect(store.update(lie, { outcome: null })).rejects.toThrow();
      await expect(store.update(ended, { outcome: null })).rejects.toMatchObject({
        code: "illegal_transition",
      });
      expect(await store.get(task.owner, task.taskId)).toEqual(ended);
      // Also where the caller forgot to say when it ended.
      const half = await store.update(await store.insert(row(), CREATED), { status: "failed" });
      const claim = store.update({ ...half, status: "working" }, { status: "completed" });
      await expect(claim).rejects.toMatchObject({ code: "illegal_transition" });
    });

    test("an answer that comes with the end of its question is kept", async () => {
      const { store } = await fresh();
      let task = await store.insert(row(), CREATED);
      const open = [{ key: "q", message: "?" }];
      task = await store.update(task, {}, { questions: { open } });
      const answers = { q: { action: "decline" as const } };
      task = await store.update(task, {}, { questions: { answers, open: [] } });
      const state = async () => (await store.questions("ann", task.taskId))[0]?.state;
      expect(await state()).toBe("answered");
      task = await store.update(task, {}, { questions: { delivered: ["q"] } });
      await store.update(task, {}, { questions: { gone: ["q"] } });
      expect(await state()).toBe("delivered");
    });

    test("times are whole milliseconds, whoever computed them", async () => {
      const { store } = await fresh();
      const task = await store.insert(row({ nextReadAt: 10.4 }), CREATED);
      expect(task.nextReadAt).toBe(10);
      expect((await store.update(task, { dueAt: 7.5 })).dueAt).toBe(8);
    });

    test("only what clients see moves the time of the last update", async () => {
      const { store } = await fresh();
      const task = await store.insert(row(), CREATED);
      const paced = await store.update(task, { nextReadAt: 9, message: null }, { now: 77 });
      expect(paced.updatedAt).toBe(task.updatedAt);
      expect((await store.update(paced, { message: "news" }, { now: 78 })).updatedAt).toBe(78);
    });

    test("questions: opened once, answered once, gone when the engine no longer asks", async () => {
      const { store } = await fresh();
      let task = await store.insert(row(), CREATED);
      const states = async () =>
        Object.fromEntries(
          (await store.questions("ann", task.taskId)).map((question) => [question.key, question.state]),
        );
      const open = [
        { key: "a", message: "A?" },
        { key: "b", message: "B?", schema: { type: "object" } },
      ];
      task = await store.update(task, {}, { questions: { open }, now: 10 });
      expect(await states()).toEqual({ a: "open", b: "open" });
      const answer = { action: "accept" as const, content: { x: 1 } };
      task = await store.update(task, {}, { questions: { answers: { a: answer, other: answer } }, now: 11 });
      task = await store.update(task, {}, { questions: { answers: { a: { action: "decline" } } } });
      const [first] = await store.questions("ann", task.taskId);
      expect(first).toMatchObject({ key: "a", state: "answered", answer, askedAt: 10, answeredAt: 11 });
      task = await store.update(task, {}, { questions: { delivered: ["a"] } });
      task = await store.update(
        task,
        {},
        {
          questions: {
            open: [
              { key: "a", message: "again" },
              { key: "c", message: "C?" },
            ],
          },
        },
      );
      expect(await states()).toEqual({ a: "delivered", b: "gone", c: "open" });
    });

    test("one holder at a time asks an open question", async () => {
      const { store } = await fresh();
      const task = await store.insert(row(), CREATED);
      await store.update(task, {}, { questions: { open: [{ key: "q", message: "?" }] } });
      const ask = (holder: string, now: number) =>
        store.leaseQuestion("ann", task.taskId, "q", { holder, now, until: now + 10 });
      expect(await ask("a", 0)).toBe(true);
      expect(await ask("b", 5)).toBe(false);
      expect(await ask("a", 5)).toBe(true);
      expect(await ask("b", 15)).toBe(true);
      await store.releaseQuestion("ann", task.taskId, "q", "b");
      expect(await ask("a", 16)).toBe(true);
      expect(await store.leaseQuestion("ann", task.taskId, "none", LEASE)).toBe(false);
    });
  });

  describe(`${database.name}: ends`, { timeout: 30_000 }, () => {
    test("removing leaves a tombstone, and the id may be taken again", async () => {
      const { store } = await fresh();
      const task = await store.insert(row({ taskId: "t" }), CREATED);
      await store.update(task, {}, { questions: { open: [{ key: "q", message: "?" }] } });
      expect(await store.remove("ann", "t", "deleted", 9, { type: "task.deleted" })).toBe(true);
      expect(await store.remove("ann", "t", "deleted", 9, { type: "task.deleted" })).toBe(false);
      expect(await store.get("ann", "t")).toBeUndefined();
      expect(await store.questions("ann", "t")).toEqual([]);
      expect(await store.tombstone("ann", "t")).toBe("deleted");
      expect(await store.tombstone("bob", "t")).toBeUndefined();
      await store.insert(row({ taskId: "t" }), CREATED);
      expect(await store.tombstone("ann", "t")).toBeUndefined();
    });

    test("sweeping takes what has expired, but nothing that still owes a stop", async () => {
      const { store } = await fresh();
      const end = { status: "cancelled" as const, endedAt: 1, expiresAt: 10 };
      await store.insert(row({ taskId: "old", ...end }), CREATED);
      await store.insert(row({ taskId: "owes", ...end, cancelRequestedAt: 1 }), CREATED);
      await store.insert(
        row({ taskId: "confirmed", ...end, cancelRequestedAt: 1, cancelConfirmedAt: 2 }),
        CREATED,
      );
      await store.insert(row({ taskId: "later", ...end, expiresAt: 11 }), CREATED);
      await store.insert(row({ taskId: "runs" }), CREATED);
      const options = { now: 10, limit: 100, tombstonesBefore: 0, eventsBefore: 0 };
      expect((await store.sweep(options)).tasks).toBe(2);
      expect(await store.tombstone("ann", "old")).toBe("expired");
      const left = (await store.list("ann", { limit: 10 })).map((task) => task.taskId);
      expect(left.sort()).toEqual(["later", "owes", "runs"]);
      const swept = await store.sweep({ ...options, tombstonesBefore: 11, eventsBefore: 2_000_000_000_000 });
      expect(swept).toMatchObject({ tasks: 0, tombstones: 2 });
      // The last event stays, so that its number does not come again.
      expect((await store.events({ limit: 10 })).length).toBe(1);
    });

    test("events are told in order and filtered", async () => {
      const { store } = await fresh();
      await store.insert(row({ taskId: "t" }), [{ type: "task.created", detail: { engine: "fake" } }]);
      await store.record("ann", "t", [{ type: "one" }, { type: "two" }], 5);
      await store.record("bob", "u", [{ type: "three" }], 6);
      const all = await store.events({ limit: 10 });
      expect(all.map((event) => event.type)).toEqual(["task.created", "one", "two", "three"]);
      expect(all[0]).toMatchObject({ owner: "ann", taskId: "t", detail: { engine: "fake" } });
      expect(await store.events({ after: all[1]?.seq ?? 0, owner: "ann", limit: 10 })).toHaveLength(1);
    });

    test("a closed store says so", async () => {
      const store = await (await database.create()).open();
      await store.close();
      await store.close();
      await expect(store.get("ann", "t")).rejects.toMatchObject({ code: "closed" });
    });
  });
}
