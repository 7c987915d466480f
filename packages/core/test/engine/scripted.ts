/** An engine that does what a test says, call by call, and remembers what it was asked. */
import { onTestFinished } from "vitest";
import {
  createTaskEngine,
  defineWorkflow,
  EngineError,
  type ErrorVerdict,
  LOCAL_OWNER,
  type RunState,
  type TaskEngine,
  type TaskView,
  type Timing,
  type WorkflowAdapter,
} from "../../src/index.js";
import { sqliteStore } from "../../src/store/sqlite.js";

/** One answer, or how the call goes wrong. */
type Reply<T> = T | ErrorVerdict["kind"] | (() => Promise<T>);

export interface Script {
  start?: Reply<{ ref: string }>[];
  find?: Reply<{ ref: string } | undefined>[];
  read?: Reply<RunState>[];
  stop?: Reply<void>[];
}

export const WORKING: RunState = { native: "RUNNING", status: "working" };
export const DONE: RunState = { native: "DONE", status: "completed", output: { value: { answer: 42 } } };
export const STOPPED: RunState = { native: "STOPPED", status: "cancelled" };

export interface Scripted {
  readonly engine: TaskEngine;
  /** Every native call, in order: `start`, `start again`, `find`, `read`, `stop 0`, … */
  readonly calls: string[];
  create(taskId?: string): Promise<TaskView>;
  get(taskId: string): Promise<TaskView["task"]>;
}

/** The last entry of a script is given for ever. */
export async function scripted(
  script: Script,
  adapter: Partial<WorkflowAdapter> = {},
  timing: Partial<Timing> = {},
): Promise<Scripted> {
  const calls: string[] = [];
  const next = async <T>(name: keyof Script, fallback: T): Promise<T> => {
    const replies = (script[name] ?? []) as Reply<T>[];
    const reply = replies.length > 1 ? replies.shift() : replies[0];
    if (reply === undefined) return fallback;
    if (typeof reply === "function") return (reply as () => Promise<T>)();
    if (reply === "retry" || reply === "ambiguous" || reply === "rejected" || reply === "gone") {
      throw new EngineError({
        kind: reply as ErrorVerdict["kind"],
        code: "Scripted",
        message: `scripted ${reply}`,
      });
    }
    return reply as T;
  };
  const engine = await createTaskEngine({
    store: await sqliteStore({ path: ":memory:" }),
    timing: { tickMs: 10, leaseMs: 200, startWaitMs: 50, readWaitMs: 200, ...timing },
    workflows: [
      defineWorkflow({
        name: "flow",
        pollMs: 10,
        adapter: {
          engine: "scripted",
          start: ({ retry }) => {
            calls.push(retry ? "start again" : "start");
            return next("start", { ref: "run" });
          },
          ...(script.find !== undefined && {
            find: () => {
              calls.push("find");
              return next<{ ref: string } | undefined>("find", undefined);
            },
          }),
          read: () => {
            calls.push("read");
            return next("read", WORKING);
          },
          ...(script.stop !== undefined && {
            stop: (_ref, { stopsSent }) => {
              calls.push(`stop ${stopsSent}`);
              return next<void>("stop", undefined);
            },
          }),
          ...adapter,
        },
      }),
    ],
  });
  onTestFinished(() => engine.close());
  return {
    engine,
    calls,
    create: (taskId = "task") =>
      engine.create({ owner: LOCAL_OWNER, generation: "draft", workflow: "flow", arguments: {}, taskId }),
    get: async (taskId) => (await engine.get(LOCAL_OWNER, taskId)).task,
  };
}
