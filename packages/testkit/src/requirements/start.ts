import assert from "node:assert/strict";
import { requirement } from "../requirement.js";
import { assertJson } from "../scene.js";

/** One key, one run. */
export const start = [
  requirement({
    id: "start.runs",
    behaviour: "start",
    says: "A start makes exactly one native run",
    source: "WorkflowAdapter.start",
    drive: ["runs"],
    async check(scene) {
      const before = await scene.drive.runs();
      await scene.start();
      assert.equal(await scene.drive.runs(), before + 1);
    },
  }),
  requirement({
    id: "start.json",
    behaviour: "start",
    says: "What a start returns survives JSON",
    source: "RunRef",
    async check(scene) {
      assertJson((await scene.start()).started, "the started run");
    },
  }),
  requirement({
    id: "start.once",
    behaviour: "start",
    says: "A second start with the same key makes no second run and returns the first",
    source: "WorkflowAdapter.startsOnce",
    drive: ["runs", "finish"],
    adapter: ["startsOnce"],
    async check(scene) {
      const first = await scene.start();
      const count = await scene.drive.runs();
      const second = await scene.start({ key: first.key, retry: true });
      assert.equal(await scene.drive.runs(), count, "there is a second run");
      await scene.drive.finish(first, "done");
      await second.untilStatus("completed");
    },
  }),
  requirement({
    id: "start.once-at-a-time",
    behaviour: "start",
    says: "Two starts with the same key at the same time make one run",
    source: "WorkflowAdapter.startsOnce",
    drive: ["finish"],
    adapter: ["startsOnce"],
    async check(scene) {
      const key = scene.key();
      const other = await scene.connect();
      // One of them may be refused for now.
      const starts = await Promise.allSettled([
        scene.start({ key }),
        scene.start({ key, retry: true }, other),
      ]);
      const runs = starts.flatMap((start) => (start.status === "fulfilled" ? [start.value] : []));
      const [run = assert.fail("both starts were refused")] = runs;
      await scene.drive.finish(run, "done");
      for (const same of runs) await same.untilStatus("completed");
    },
  }),
  requirement({
    id: "start.once-ended",
    behaviour: "start",
    says: "A start with the key of a run that has ended returns that run",
    source: "WorkflowAdapter.startsOnce",
    drive: ["runs", "finish"],
    adapter: ["startsOnce"],
    async check(scene) {
      const run = await scene.start();
      await scene.drive.finish(run, "done");
      await run.untilEnded();
      const count = await scene.drive.runs();
      const again = await scene.start({ key: run.key, retry: true });
      assert.equal(await scene.drive.runs(), count, "there is a second run");
      await again.untilStatus("completed");
    },
  }),
  requirement({
    id: "start.once-lost",
    behaviour: "start",
    says: "A start whose response was lost is made good by another start with the same key",
    source: "WorkflowAdapter.startsOnce",
    drive: ["runs", "loseStartResponse"],
    adapter: ["startsOnce"],
    async check(scene) {
      const key = scene.key();
      await scene.drive.loseStartResponse();
      await scene.start({ key }).catch(() => undefined);
      const count = await scene.drive.runs();
      const retried = await scene.start({ key, retry: true }, await scene.connect());
      assert.equal(await scene.drive.runs(), count, "there is a second run");
      await retried.until("a run that can be read", () => true);
    },
  }),
  requirement({
    id: "start.input-untouched",
    behaviour: "start",
    says: "A start does not change the input it is given",
    source: "StartRequest.input",
    async check(scene) {
      const input = deepFreeze(await scene.input({ list: [1, { two: 2 }] }));
      await scene.adapter.start({ key: scene.key(), input, retry: false, signal: scene.signal });
    },
  }),
  requirement({
    id: "start.claims",
    behaviour: "start",
    says: "Two starts whose responses name no run end up with different runs, by claiming them",
    source: "StartedRun.claim",
    drive: ["omitStartId"],
    async check(scene) {
      await scene.drive.omitStartId();
      const runs = await Promise.all([scene.start(), scene.start()]);
      const unnamed = runs.map((run) => JSON.stringify(run.ref));
      for (const [index, run] of runs.entries()) {
        await run.until("a better ref", () => JSON.stringify(run.ref) !== unnamed[index]);
      }
      assert.notDeepEqual(runs[0]?.ref, runs[1]?.ref, "both tasks have the same run");
    },
  }),
] as const;

function deepFreeze<Value>(value: Value): Value {
  if (typeof value === "object" && value !== null) Object.values(value).forEach(deepFreeze);
  return Object.freeze(value);
}
