/** Engines that are slow, hang, break, throttle and lie: clients hear no error and no wrong status. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import {
  createTaskEngine,
  defineWorkflow,
  EngineError,
  LOCAL_OWNER,
  mayBecome,
  type RunState,
  type TaskStatus,
} from "@taskferry/core";
import { sqliteStore } from "@taskferry/core/sqlite";

/** What goes wrong with one read in five. */
const FAULTS: readonly ((truth: RunState, signal: AbortSignal) => Promise<RunState>)[] = [
  async (truth) => {
    await sleep(20);
    return truth;
  },
  (_truth, signal) =>
    new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
  async () => Promise.reject(Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" })),
  async () => Promise.reject(new EngineError({ kind: "ambiguous", code: "500", message: "internal error" })),
  async () =>
    Promise.reject(
      new EngineError({ kind: "retry", code: "Throttled", message: "slow down", retryAfterMs: 15 }),
    ),
  async () => ({ native: "QUEUED", status: "submitted" }),
  async () => ({ native: `WORD-${Math.random()}`, status: "unchanged" }),
];

export async function engineFaults(polls: number): Promise<boolean> {
  const folder = await mkdtemp(join(tmpdir(), "taskferry-faults-"));
  const readsNeeded = 8;
  const readsOf = new Map<string, number>();
  let faults = 0;
  const engine = await createTaskEngine({
    store: await sqliteStore({ path: join(folder, "tasks.db"), synchronous: "NORMAL" }),
    limits: { getPerMinute: 1e9, createPerMinute: 1e9, concurrentTasks: 1e9 },
    timing: { readDeadlineMs: 100, readWaitMs: 50, tickMs: 50 },
    workflows: [
      defineWorkflow({
        name: "flow",
        pollMs: 5,
        adapter: {
          engine: "liar",
          startsOnce: true,
          start: async ({ key }) => ({ ref: key }),
          async read(ref, { signal }) {
            const reads = (readsOf.get(ref as string) ?? 0) + 1;
            const truth: RunState =
              reads > readsNeeded
                ? { native: "DONE", status: "completed", output: { value: { ref } } }
                : { native: "RUNNING", status: "working", message: `read ${reads}` };
            if (Math.random() < 0.2) {
              faults += 1;
              const fault = FAULTS[Math.floor(Math.random() * FAULTS.length)];
              if (fault !== undefined) return fault(truth, signal);
            }
            readsOf.set(ref as string, reads);
            return truth;
          },
        },
      }),
    ],
  });
  const problems: string[] = [];
  let left = polls;
  let ended = 0;
  const pollOne = async () => {
    while (left > 0) {
      const call = { owner: LOCAL_OWNER, generation: "draft", workflow: "flow", arguments: {} } as const;
      const { taskId } = (await engine.create(call)).task;
      let last: TaskStatus = "submitted";
      while (left > 0 && last !== "completed") {
        left -= 1;
        try {
          const { task } = await engine.get(LOCAL_OWNER, taskId);
          if (!mayBecome(last, task.status)) problems.push(`${last} became ${task.status}`);
          if (task.status === "failed" || task.status === "unknown" || task.status === "cancelled")
            problems.push(`ended as ${task.status}`);
          last = task.status;
        } catch (error) {
          problems.push(`a poll was answered with an error: ${(error as Error).message}`);
        }
        await sleep(1);
      }
      if (last === "completed") ended += 1;
    }
  };
  await Promise.all(Array.from({ length: 40 }, pollOne));
  await engine.close();
  await rm(folder, { recursive: true, force: true });
  for (const problem of new Set(problems)) console.log(`WRONG ${problem}`);
  console.log(
    `engine faults: ${polls} polls, ${faults} faulty reads, ${ended} tasks completed, ${problems.length} problems`,
  );
  return problems.length === 0 && faults > 0 && ended > 0;
}
