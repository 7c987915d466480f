import assert from "node:assert/strict";
import { requirement } from "../requirement.js";

/** The run of an interrupted start is found again. */
export const find = [
  requirement({
    id: "find.none",
    behaviour: "find",
    says: "`find` answers `undefined` for a key that started nothing, also when other runs exist",
    source: "WorkflowAdapter.find",
    adapter: ["find"],
    async check(scene) {
      await scene.start();
      const found = await scene.eventually(() => scene.find(scene.key(), scene.adapter));
      assert.equal(found, undefined);
    },
  }),
  requirement({
    id: "find.again",
    behaviour: "find",
    says: "`find` answers the run that this key started, and not another one",
    source: "WorkflowAdapter.find",
    drive: ["finish"],
    adapter: ["find"],
    async check(scene) {
      const runs = [await scene.start(), await scene.start(), await scene.start()] as const;
      const found = await scene.eventually(async () => {
        return (await scene.find(runs[1].key, scene.adapter)) ?? assert.fail("not found");
      });
      await scene.drive.finish(runs[1], "done");
      await scene.adopt(runs[1].key, runs[1].input, found, scene.adapter).untilStatus("completed");
    },
  }),
  requirement({
    id: "find.ended",
    behaviour: "find",
    says: "`find` answers a run that has ended meanwhile",
    source: "WorkflowAdapter.find",
    drive: ["finish"],
    adapter: ["find"],
    async check(scene) {
      const run = await scene.start();
      await scene.drive.finish(run, "done");
      await run.untilEnded();
      await scene.eventually(async () => assert.ok(await scene.find(run.key, scene.adapter), "not found"));
    },
  }),
  requirement({
    id: "find.lost",
    behaviour: "find",
    says: "`find` answers the run of a start whose response was lost",
    source: "WorkflowAdapter.find",
    drive: ["loseStartResponse"],
    adapter: ["find"],
    async check(scene) {
      const key = scene.key();
      await scene.drive.loseStartResponse();
      await scene.start({ key }).catch(() => undefined);
      await scene.eventually(async () => assert.ok(await scene.find(key, scene.adapter), "not found"));
    },
  }),
] as const;
