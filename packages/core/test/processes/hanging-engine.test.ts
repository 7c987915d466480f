/** Engines that hang, and crowds that poll: everybody is answered soon, and the engine hears of it once. */
import { describe, expect, onTestFinished, test, vi } from "vitest";
import {
  createTaskEngine,
  defineWorkflow,
  LOCAL_OWNER,
  type Timing,
  type WorkflowAdapter,
} from "../../src/index.js";
import { sqliteStore } from "../../src/store/sqlite.js";
import { rawClient } from "../support/clients.js";
import { tempDir, testEngine } from "../support/engines.js";
import { modernRequest, TASKS } from "../support/raw-client.js";
import { modern, modernPipe, overHttp, overStdio } from "../support/serving.js";
import { DRAFT_TASK, session } from "../support/sessions.js";

/** An engine under the test's thumb. */
class Thumb implements WorkflowAdapter {
  readonly engine = "thumb";
  readonly startsOnce: boolean;
  starts: string[] = [];
  reads = 0;
  state: "working" | "completed" = "working";
  private held = new Map<string, { promise: Promise<void>; open: () => void }>();

  constructor(options: { startsOnce?: boolean } = {}) {
    this.startsOnce = options.startsOnce ?? true;
  }

  hold(operation: "start" | "read"): void {
    let open = () => {};
    const promise = new Promise<void>((resolve) => {
      open = resolve;
    });
    this.held.set(operation, { promise, open });
    onTestFinished(() => open());
  }

  release(operation: "start" | "read"): void {
    this.held.get(operation)?.open();
    this.held.delete(operation);
  }

  // Signals are ignored, as a bad SDK would.
  async start({ key }: { key: string }) {
    this.starts.push(key);
    await this.held.get("start")?.promise;
    return { ref: key };
  }

  async read() {
    this.reads += 1;
    await this.held.get("read")?.promise;
    return { native: this.state.toUpperCase(), status: this.state, message: "at it" } as const;
  }
}

async function engineOf(adapter: WorkflowAdapter, timing: Partial<Timing>, pollMs = 60_000) {
  const workflow = defineWorkflow({ name: "work", adapter, pollMs });
  return testEngine({ workflows: [workflow], timing: { tickMs: 20, ...timing } });
}

describe("an engine whose start hangs", () => {
  test("every generation has its task within startWait, and each start happens once, later", async () => {
    const adapter = new Thumb();
    adapter.hold("start");
    const engine = await engineOf(adapter, { startWaitMs: 50, leaseMs: 200 }, 20);
    const { url } = await overHttp(engine);
    const call = { name: "work", arguments: {} };
    const client = await session(url);
    // Each of these would never come if the answer waited for the start.
    const created2026 = await modernRequest(url, "tools/call", call, { capabilities: TASKS });
    const created2025 = await client.request("tools/call", { ...call, task: {} });
    const open = client.request("tools/call", { ...call, _meta: { [DRAFT_TASK]: { taskId: "mine" } } });
    await client.until(() =>
      client.notifications.find(({ method }) => method === "notifications/tasks/created"),
    );
    expect(created2026.result.status).toBe("working");
    expect(created2026.result.statusMessage).toBe("Starting");
    expect(created2025.result.task.status).toBe("working");
    const draft = await client.request("tasks/get", {
      taskId: "mine",
      _meta: { "modelcontextprotocol.io/related-task": { taskId: "mine" } },
    });
    expect(draft.result.status).toBe("submitted");

    // The lease of a start under way is renewed: nobody takes it for a crash and starts again.
    const { taskId } = created2026.result;
    const leased = async () => (await engine.peek(LOCAL_OWNER, taskId)).task.leaseUntil ?? 0;
    const first = await leased();
    await expect.poll(leased, { timeout: 5_000 }).toBeGreaterThan(first + 300);
    expect(adapter.starts).toHaveLength(3);
    adapter.state = "completed";
    adapter.release("start");
    await open;
    await expect.poll(async () => (await engine.get(LOCAL_OWNER, taskId)).task.status).toBe("completed");
    expect(new Set(adapter.starts).size).toBe(3);
    expect(adapter.starts).toHaveLength(3);
  });

  test("past its deadline: started again under the same key where that starts nothing new", async () => {
    const adapter = new Thumb();
    adapter.hold("start");
    const engine = await engineOf(adapter, { startWaitMs: 10, startDeadlineMs: 40 });
    const { task } = await engine.create({
      owner: LOCAL_OWNER,
      generation: "2026-07-28",
      workflow: "work",
      arguments: {},
    });
    await expect.poll(() => adapter.starts.length, { timeout: 5_000 }).toBeGreaterThan(1);
    adapter.release("start");
    await expect
      .poll(async () => (await engine.peek(LOCAL_OWNER, task.taskId)).task.startPhase, { timeout: 5_000 })
      .toBe("bound");
    expect(new Set(adapter.starts).size).toBe(1);
  });

  test("past its deadline: never started again where that might start a second run", async () => {
    const adapter = new Thumb({ startsOnce: false });
    adapter.hold("start");
    const engine = await engineOf(adapter, { startWaitMs: 10, startDeadlineMs: 40 });
    const { task } = await engine.create({
      owner: LOCAL_OWNER,
      generation: "2026-07-28",
      workflow: "work",
      arguments: {},
    });
    const row = async () => (await engine.peek(LOCAL_OWNER, task.taskId)).task;
    await expect.poll(async () => (await row()).status, { timeout: 5_000 }).toBe("failed");
    expect((await row()).message).toContain("Start outcome unknown");
    expect(adapter.starts).toHaveLength(1);
  });
});

describe("a thousand polls at once", () => {
  /** The clock stands still but for what a test adds: intervals pass only when it says so. */
  function stoppedClock(): (ms: number) => void {
    vi.useFakeTimers({ toFake: ["Date"] });
    onTestFinished(() => void vi.useRealTimers());
    return (ms) => void vi.setSystemTime(Date.now() + ms);
  }

  const crowd = <T>(poll: (index: number) => Promise<T>) =>
    Promise.all(Array.from({ length: 1_000 }, (_one, index) => poll(index)));

  test.each(["engine", "2026-07-28", "2025-11-25"])(
    "cost one native read per interval (%s)",
    async (face) => {
      const pass = stoppedClock();
      const adapter = new Thumb();
      const engine = await engineOf(adapter, {}, 1_000);
      const { task } = await engine.create({
        owner: LOCAL_OWNER,
        generation: "2026-07-28",
        workflow: "work",
        arguments: {},
      });
      const { taskId } = task;
      const pipe = await modernPipe(overStdio(engine).transport);
      const { client } = await rawClient(overStdio(engine).transport, "2025-11-25");
      const poll = async () => {
        if (face === "engine") return (await engine.get(LOCAL_OWNER, taskId)).task.status;
        const reply =
          face === "2026-07-28"
            ? await pipe.request("tasks/get", modern({ taskId }, TASKS))
            : await client.request("tasks/get", { taskId });
        return reply.result.status;
      };
      await poll();
      for (let interval = 0; interval < 3; interval++) {
        pass(1_000);
        const before = adapter.reads;
        expect(new Set(await crowd(poll))).toEqual(new Set(["working"]));
        expect(adapter.reads).toBe(before + 1);
        // And again before the interval is over.
        pass(999);
        await crowd(poll);
        expect(adapter.reads).toBe(before + 1);
      }
    },
    30_000,
  );

  test("are all answered from the row while the engine's read hangs, which is one read", async () => {
    const adapter = new Thumb();
    const engine = await engineOf(adapter, { readWaitMs: 50, readDeadlineMs: 60_000, drainMs: 10 }, 1);
    const { task } = await engine.create({
      owner: LOCAL_OWNER,
      generation: "2026-07-28",
      workflow: "work",
      arguments: {},
    });
    const { taskId } = task;
    await expect.poll(async () => (await engine.get(LOCAL_OWNER, taskId)).task.message).toBe("at it");
    adapter.hold("read");
    const before = adapter.reads;
    await expect.poll(() => adapter.reads).toBe(before + 1);
    const pipe = await modernPipe(overStdio(engine).transport);
    const replies = await crowd(() => pipe.request("tasks/get", modern({ taskId }, TASKS)));
    for (const { result } of replies)
      expect(result).toMatchObject({ status: "working", statusMessage: "at it" });
    expect(adapter.reads).toBe(before + 1);
    adapter.state = "completed";
    adapter.release("read");
    await expect.poll(async () => (await engine.get(LOCAL_OWNER, taskId)).task.status).toBe("completed");
  }, 30_000);

  test("say since when an engine cannot be read, and never fail for it", async () => {
    const adapter = new Thumb();
    const engine = await engineOf(adapter, { readDeadlineMs: 30 }, 1);
    const { task } = await engine.create({
      owner: LOCAL_OWNER,
      generation: "2026-07-28",
      workflow: "work",
      arguments: {},
    });
    adapter.hold("read");
    const pipe = await modernPipe(overStdio(engine).transport);
    const get = async () => (await pipe.request("tasks/get", modern({ taskId: task.taskId }, TASKS))).result;
    await expect
      .poll(async () => (await get()).statusMessage, { timeout: 5_000 })
      .toMatch(/thumb cannot be read since 20/);
    expect((await get()).status).toBe("working");
  });
});

test("a task that nobody polls still ends in its row, and leaves the owner's limits", async () => {
  const adapter = new Thumb();
  const store = await sqliteStore({ path: `${await tempDir()}/tasks.db` });
  const workflow = defineWorkflow({ name: "work", adapter, pollMs: 10 });
  const engine = await createTaskEngine({
    workflows: [workflow],
    store,
    timing: { tickMs: 20 },
    limits: { concurrentTasks: 1 },
  });
  onTestFinished(() => engine.close());
  const call = { owner: LOCAL_OWNER, generation: "2026-07-28", workflow: "work", arguments: {} } as const;
  const { task } = await engine.create(call);
  await expect(engine.create(call)).rejects.toMatchObject({ code: "limit_exceeded" });
  adapter.state = "completed";
  // Looked at from behind, where looking reads nothing.
  await expect
    .poll(async () => (await store.get(LOCAL_OWNER.id, task.taskId))?.status, { timeout: 5_000 })
    .toBe("completed");
  await engine.create(call);
});
