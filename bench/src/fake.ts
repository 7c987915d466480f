/** An engine that costs nothing, so that what is measured is Taskferry. */
import type { WorkflowAdapter } from "@taskferry/core";

export interface FakeEngine {
  readonly adapter: WorkflowAdapter;
  reads: number;
}

export function fakeEngine(): FakeEngine {
  const engine: FakeEngine = {
    reads: 0,
    adapter: {
      engine: "fake",
      startsOnce: true,
      start: async ({ key }) => ({ ref: key }),
      read: async () => {
        engine.reads += 1;
        return { native: "RUNNING", status: "working", message: "step 1" };
      },
      stop: async () => {},
    },
  };
  return engine;
}
