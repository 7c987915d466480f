/** What the engine relies on, on both databases. */
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { mayBecome, type Task, type TaskStatus } from "../../src/task.js";
import { databases } from "./databases.js";
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
  const fresh = async () => {
    const made = await database.create();
    const open = async () => {
      const store = await made.open();
      onTestFinished(() => store.close());
      return store;
    };
    return { store: await open(), open };
  };

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
      expect(await store.countActive("ann")).toBe(2);
      const ended = await store.update(newer, { status: "cancelled", endedAt: 3, cancelRequestedAt: 3 });
      expect(await store.countActive("ann")).toBe(2);
      await store.update(ended, { cancelConfirmedAt: 4 });
      expect(await store.countActive("ann")).toBe(1);
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

  describe(`${database.name}: leases`, { timeout: 30_000 }, () => {
    test("a lease keeps others away until it is given back or runs out", async () => {
      const { store } = await fresh();
      const task = await store.insert(row(), CREATED);
      const take = (holder: string, now: number) =>
        store.lease("ann", task.taskId, { holder, now, until: now + 100 });
      expect((await take("a", 0))?.leaseHolder).toBe("a");
      expect(await take("b", 50)).toBeUndefined();
      expect(await store.renewLease("ann", task.taskId, { holder: "a", now: 90, until: 200 })).toBe(true);
      expect(await take("b", 150)).toBeUndefined();
      expect((await take("b", 200))?.leaseHolder).toBe("b");
      expect(await store.renewLease("ann", task.taskId, { holder: "a", now: 210, until: 400 })).toBe(false);
      await store.releaseLease("ann", task.taskId, "a");
      expect(await take("c", 210)).toBeUndefined();
      await store.releaseLease("ann", task.taskId, "b");
      expect((await take("c", 210))?.version).toBe(1);
    });

    test("a change may give the lease back, but not another holder's", async () => {
      const { store } = await fresh();
      const task = await store.insert(row(), CREATED, LEASE);
      expect(task.leaseHolder).toBe("a");
      const kept = await store.update(task, { message: "x" }, { release: "b" });
      expect(kept.leaseHolder).toBe("a");
      expect((await store.update(kept, { message: "y" }, { release: "a" })).leaseHolder).toBeNull();
    });

    test("what is due of all workflows comes oldest first, and no more than asked for", async () => {
      const { store } = await fresh();
      const workflows = ["one", "two", "three"];
      for (let i = 0; i < 12; i++)
        await store.insert(
          row({ taskId: `t${i}`, dueAt: 100 - i, workflow: workflows[i % 3] as string }),
          CREATED,
        );
      const take = async (limit: number) =>
        (await store.leaseDue({ ...LEASE, workflows, limit })).map((task) => task.taskId);
      expect(await store.nextDue(workflows)).toBe(89);
      expect(await store.nextDue(["two"])).toBe(90);
      expect(await take(5)).toEqual(["t11", "t10", "t9", "t8", "t7"]);
      expect(await take(100)).toEqual(["t6", "t5", "t4", "t3", "t2", "t1", "t0"]);
      expect(await take(100)).toEqual([]);
    });

    test("due tasks are taken oldest first, once each, by many stores at the same time", async () => {
      const { store, open } = await fresh();
      for (let i = 0; i < 40; i++) await store.insert(row({ dueAt: 100 - i }), CREATED);
      await store.insert(row({ dueAt: 5000 }), CREATED);
      await store.insert(row({ dueAt: 1, workflow: "unknown here" }), CREATED);
      const others = await Promise.all([open(), open(), open()]);
      const request = { now: 1000, until: 9000, workflows: ["flow"], limit: 7 };
      const taken: string[] = [];
      const drain = async (holder: string, from: typeof store) => {
        for (;;) {
          const tasks = await from.leaseDue({ ...request, holder });
          if (tasks.length === 0) return;
          expect(tasks.every((task) => task.leaseHolder === holder)).toBe(true);
          taken.push(...tasks.map((task) => task.taskId));
        }
      };
      await Promise.all([store, ...others].map((each, i) => drain(`h${i}`, each)));
      // SKIP LOCKED passes over rows that others are about to take; a last look finds what they left.
      await drain("last", store);
      expect(taken).toHaveLength(40);
      expect(new Set(taken).size).toBe(40);
      expect(await store.nextDue(["flow"])).toBeLessThanOrEqual(100);
      expect(await store.nextDue(["nothing"])).toBeUndefined();
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

  describe(`${database.name}: several stores`, { timeout: 30_000 }, () => {
    test("changes of one are heard by the other, until it stops listening", async () => {
      const { store, open } = await fresh();
      const other = await open();
      const heard: string[] = [];
      const stop = other.onChange((owner, taskId) => heard.push(`${owner}/${taskId}`));
      const task = await store.insert(row({ taskId: "nul\u0000" }), CREATED);
      await vi.waitUntil(() => heard.includes("ann/nul\u0000"), { timeout: 5000 });
      const before = heard.length;
      await store.update(task, { message: "news" });
      await vi.waitUntil(() => heard.length > before, { timeout: 5000 });
      stop();
      const after = heard.length;
      const again: string[] = [];
      onTestFinished(other.onChange((_owner, taskId) => again.push(taskId)));
      const third = await store.insert(row({ taskId: "third" }), CREATED);
      await vi.waitUntil(() => again.includes(third.taskId), { timeout: 5000 });
      expect(heard).toHaveLength(after);
    });

    test("own changes are heard at once", async () => {
      const { store } = await fresh();
      const heard: string[] = [];
      onTestFinished(store.onChange((_owner, taskId) => heard.push(taskId)));
      await store.insert(row({ taskId: "mine" }), CREATED);
      // Perhaps once more from the log, where a listener cannot tell its own changes from others'.
      expect(new Set(heard)).toEqual(new Set(["mine"]));
    });

    test("all share one secret, and may open at the same time", async () => {
      const made = await database.create();
      const stores = await Promise.all([made.open(), made.open(), made.open(), made.open()]);
      onTestFinished(() => Promise.all(stores.map((store) => store.close())).then(() => {}));
      const secrets = await Promise.all(stores.map((store) => store.secret()));
      expect(new Set(secrets.map((secret) => Buffer.from(secret).toString("hex"))).size).toBe(1);
      expect(secrets[0]).toHaveLength(32);
    });

    test("many writers of one row lose no change", async () => {
      const { store, open } = await fresh();
      const other = await open();
      const task = await store.insert(row(), CREATED);
      const count = async (from: typeof store) => {
        for (let i = 0; i < 20; i++) {
          for (;;) {
            const now = (await from.get("ann", task.taskId)) as Task;
            const done = { done: (now.progress?.done ?? 0) + 1 };
            const written = await from.update(now, { progress: done }).catch((error: { code: string }) => {
              expect(error.code).toBe("stale_version");
              return undefined;
            });
            if (written !== undefined) break;
          }
        }
      };
      await Promise.all([count(store), count(other), count(store)]);
      expect((await store.get("ann", task.taskId))?.progress).toEqual({ done: 60 });
    });
  });
}
