import assert from "node:assert/strict";
import { requirement } from "../requirement.js";

/** What the author hands in has to be worth testing with. */
export const create = [
  requirement({
    id: "create.isolated",
    behaviour: "create",
    says: "`create` makes an engine that shares no runs with any other",
    source: "Subject.engine",
    drive: ["runs"],
    async check(scene) {
      const other = await scene.another();
      try {
        const before = await other.drive.runs?.();
        await scene.start();
        assert.equal(await other.drive.runs?.(), before, "the run was started in the other engine too");
      } finally {
        await other.close();
      }
    },
  }),
  requirement({
    id: "create.named",
    behaviour: "create",
    says: "Every instance of the adapter has the same engine name, of letters, digits, `.`, `_` and `-`",
    source: "WorkflowAdapter.engine",
    async check(scene) {
      const { engine } = await scene.connect();
      assert.match(engine, /^[a-z0-9][a-z0-9._-]*$/i);
      assert.equal(engine, scene.adapter.engine);
    },
  }),
  requirement({
    id: "create.closes",
    behaviour: "create",
    says: "`close` may be called twice, and runs go on after it",
    source: "WorkflowAdapter.close",
    drive: ["finish"],
    adapter: ["close"],
    async check(scene) {
      const first = await scene.connect();
      const run = await scene.start({}, first);
      await first.close?.();
      await first.close?.();
      const again = run.over(scene.adapter);
      await scene.drive.finish(again, "done");
      await again.untilStatus("completed");
    },
  }),
] as const;
