/** Reads beside a queue of writes, on the one connection that a process has to a SQLite file. */
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { sqliteStore } from "../../src/store/sqlite.js";
import { tempDir } from "../support/engines.js";
import { CREATED, row } from "./rows.js";

test("a read waits for the transaction that is open, however many writes queue behind it", async () => {
  const store = await sqliteStore({ path: join(await tempDir(), "tasks.db") });
  onTestFinished(() => store.close());
  const task = await store.insert(row(), CREATED);
  let written = 0;
  const writes = Array.from({ length: 60 }, () =>
    store.insert(row(), CREATED).then(() => {
      written += 1;
    }),
  );
  const passed: number[] = [];
  const reads: Promise<void>[] = [];
  while (written < writes.length) {
    await null;
    const before = written;
    reads.push(
      store.get(task.owner, task.taskId).then((found) => {
        expect(found).toEqual(task);
        passed.push(written - before);
      }),
    );
  }
  await Promise.all([...writes, ...reads]);
  expect(passed.length).toBeGreaterThan(writes.length);
  expect(Math.max(...passed)).toBeLessThanOrEqual(2);
});
