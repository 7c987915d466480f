/** Fault points: the process dies by SIGKILL before or after a write or a native call. None of it is in the product. */
import type { TaskStore, WorkflowAdapter } from "@taskferry/core";

/** Where to die. */
export interface Fault {
  readonly when: "before" | "after";
  /** `native start`, `write task.ended`, `store insert`, … */
  readonly point: string;
}

/** Every write and every native call there is. `write` points are named by the event that they append. */
export const POINTS = [
  "store insert",
  "store lease",
  "native start",
  "write run.started",
  "native read",
  "write task.status",
  "write question.answered",
  "native answer",
  "write answer.delivered",
  "write task.ended",
  "write cancel.requested",
  "native stop",
  "write run.stop_sent",
  "store sweep",
] as const;

export type Point = (typeof POINTS)[number];

export function faulty<T extends object>(target: T, prefix: string, fault: Fault | undefined): T {
  if (fault === undefined) return target;
  const die = (when: Fault["when"], points: readonly string[]) => {
    if (fault.when === when && points.includes(fault.point)) process.kill(process.pid, "SIGKILL");
  };
  return new Proxy(target, {
    get(object, name) {
      const member = Reflect.get(object, name);
      if (typeof member !== "function") return member;
      return (...args: unknown[]) => {
        const points = [`${prefix} ${String(name)}`, ...writesOf(name, args)];
        die("before", points);
        const result: unknown = member.apply(object, args);
        if (!(result instanceof Promise)) return result;
        return result.then((value) => {
          die("after", points);
          return value;
        });
      };
    },
  });
}

/** The events that an update appends name the write. */
function writesOf(name: string | symbol, args: readonly unknown[]): readonly string[] {
  if (name !== "update") return [];
  const options = args[2] as { events?: readonly { type: string }[] } | undefined;
  return (options?.events ?? []).map(({ type }) => `write ${type}`);
}

export function faultyStore(store: TaskStore, fault: Fault | undefined): TaskStore {
  return faulty(store, "store", fault);
}

export function faultyAdapter(adapter: WorkflowAdapter, fault: Fault | undefined): WorkflowAdapter {
  return faulty(adapter, "native", fault);
}
