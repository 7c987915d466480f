import assert from "node:assert/strict";
import { requirement } from "../requirement.js";
import { type SceneRun, verdictOf } from "../scene.js";

/** A stop is a request; the reads tell what came of it. */
export const stop = [
  requirement({
    id: "stop.cancels",
    behaviour: "stop",
    says: "A run that the engine stopped is `cancelled`",
    source: "WorkflowAdapter.stop",
    adapter: ["stop"],
    async check(scene) {
      const run = await scene.start();
      await run.until("a run that can be read", () => true);
      await run.stop();
      await run.untilStatus("cancelled");
    },
  }),
  requirement({
    id: "stop.repeatable",
    behaviour: "stop",
    says: "A second stop goes through, or says that the run is `gone`",
    source: "WorkflowAdapter.stop",
    adapter: ["stop"],
    async check(scene) {
      const run = await scene.start();
      await run.until("a run that can be read", () => true);
      await run.stop();
      await assertThroughOrGone(run);
    },
  }),
  requirement({
    id: "stop.ended",
    behaviour: "stop",
    says: "A stop after the end goes through or says `gone`, and changes nothing",
    source: "WorkflowAdapter.stop",
    drive: ["finish"],
    adapter: ["stop"],
    async check(scene) {
      const run = await scene.start();
      await scene.drive.finish(run, "done");
      await run.untilEnded();
      await assertThroughOrGone(run);
      assert.equal((await run.read()).status, "completed");
    },
  }),
  requirement({
    id: "stop.vanished",
    behaviour: "stop",
    says: "A stop of a run that was deleted goes through or says `gone`",
    source: "ErrorVerdict.kind",
    drive: ["vanish"],
    adapter: ["stop"],
    async check(scene) {
      const run = await scene.start();
      await run.until("a run that can be read", () => true);
      await scene.drive.vanish(run);
      await assertThroughOrGone(run);
    },
  }),
] as const;

async function assertThroughOrGone(run: SceneRun): Promise<void> {
  const kind = await run.stop().then(
    () => "through",
    (error: unknown) => verdictOf(run.adapter, error).kind,
  );
  assert.ok(kind === "through" || kind === "gone", `the stop was refused as ${kind}`);
}
