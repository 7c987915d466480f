/** Engines for tests: a real store in a temporary folder, and workflows on the function adapter. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { createTaskEngine, type TaskEngine, type TaskEngineOptions } from "../../src/index.js";
import { sqliteStore } from "../../src/store/sqlite.js";

export async function tempDir(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "taskferry-test-"));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

/** An engine on a fresh SQLite file, closed when the test ends. */
export async function testEngine(
  options: Omit<TaskEngineOptions, "store"> & { readonly path?: string },
): Promise<TaskEngine> {
  const path = options.path ?? join(await tempDir(), "tasks.db");
  const store = await sqliteStore({ path });
  const engine = await createTaskEngine({
    ...options,
    store,
    limits: {
      createPerMinute: 100_000,
      getPerMinute: 1_000_000,
      resultPerMinute: 1_000_000,
      listPerMinute: 100_000,
      concurrentTasks: 10_000,
      ...options.limits,
    },
  });
  onTestFinished(() => engine.close());
  return engine;
}
