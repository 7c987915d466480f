/** What keeps several servers on one database out of each other's way, on both databases. */
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { Task } from "../../src/contract/task.js";
import { databases, freshStore } from "./databases.js";
import { CREATED, row } from "./rows.js";

const LEASE = { holder: "a", now: 1000, until: 2000 };

for (const database of databases()) {
  const fresh = () => freshStore(database);

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
      const task = await store.insert(row(), CREATED, { lease: LEASE });
      expect(task.leaseHolder).toBe("a");
      const kept = await store.update(task, { message: "x" }, { release: "b" });
      expect(kept.leaseHolder).toBe("a");
      expect((await store.update(kept, { message: "y" }, { release: "a" })).leaseHolder).toBeNull();
    });

    test("what is due of all workflows comes oldest first, and no more than asked for", async () => {
      const { store } = await fresh();
      const workflows = ["one", "two"];
      for (let i = 0; i < 12; i++)
        await store.insert(
          row({ taskId: `t${i}`, dueAt: 100 - i, workflow: workflows[i % 2] as string }),
          CREATED,
        );
      const take = async (limit: number) =>
        (await store.leaseDue({ ...LEASE, workflows, limit })).map((task) => task.taskId);
      expect(await store.nextDue(workflows)).toBe(89);
      expect(await store.nextDue(["one"])).toBe(90);
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

    test("an owner has no more tasks than it may, however many servers write them at once", async () => {
      const { store, open } = await fresh();
      const stores = [store, await open()];
      const write = (i: number) => stores[i % 2]?.insert(row(), CREATED, { atMost: 3 });
      const written = await Promise.allSettled(Array.from({ length: 12 }, (_, i) => write(i)));
      const refused = written.flatMap((each) => (each.status === "rejected" ? [each.reason.code] : []));
      expect(refused).toEqual(Array.from({ length: 9 }, () => "limit_exceeded"));
      expect(await store.countActive("ann", 9)).toBe(3);
      // Another owner's are not counted.
      await store.insert(row({ owner: "bob" }), CREATED, { atMost: 1 });
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
