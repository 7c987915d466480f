import assert from "node:assert/strict";
import { requirement } from "../requirement.js";
import { hasEnded } from "../scene.js";

/** A stop and an end may meet. The engine decides, and the adapter tells what it decided. */
export const race = [
  requirement({
    id: "race.stop-is-no-end",
    behaviour: "race",
    says: "A run that goes on after the engine took the stop is not told as ended",
    source: "WorkflowAdapter.stop",
    drive: ["deferStop"],
    adapter: ["stop"],
    async check(scene) {
      const run = await scene.start();
      await run.until("a run that can be read", () => true);
      await scene.drive.deferStop(run);
      await run.stop();
      const { status } = await run.read();
      assert.ok(!hasEnded(status), `the run is told as ${status}`);
    },
  }),
  requirement({
    id: "race.end-wins",
    behaviour: "race",
    says: "A run that ends well in spite of a stop is `completed`",
    source: "WorkflowAdapter.stop",
    drive: ["deferStop", "finish"],
    adapter: ["stop"],
    async check(scene) {
      const run = await scene.start();
      await run.until("a run that can be read", () => true);
      await scene.drive.deferStop(run);
      await run.stop();
      await scene.drive.finish(run, "done");
      await run.untilStatus("completed");
    },
  }),
  requirement({
    id: "race.one-end",
    behaviour: "race",
    says: "A stop and an end at the same time give one end, told the same by every read",
    source: "WorkflowAdapter.stop",
    drive: ["finish"],
    adapter: ["stop"],
    async check(scene) {
      const run = await scene.start();
      await run.until("a run that can be read", () => true);
      await Promise.allSettled([run.stop(), scene.drive.finish(run, "done")]);
      const { status } = await run.untilEnded();
      for (let read = 0; read < 3; read++) assert.equal((await run.read()).status, status);
      assert.ok(status === "completed" || status === "cancelled", `the run is ${status}`);
    },
  }),
] as const;
