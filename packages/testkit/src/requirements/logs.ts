import assert from "node:assert/strict";
import type { LogPage, WorkflowAdapter } from "@taskferry/core";
import { requirement, type SceneWith } from "../requirement.js";
import type { SceneRun } from "../scene.js";

/** A log is read page by page, from any process. */
export const logs = [
  requirement({
    id: "logs.whole",
    behaviour: "logs",
    says: "The pages of a run that has ended hold each line once and in order, and the last has no cursor",
    source: "WorkflowAdapter.logs",
    drive: ["log", "finish"],
    adapter: ["logs"],
    async check(scene) {
      const run = await scene.start();
      const lines = ["kit line one", "kit line two", "kit line three"];
      for (const line of lines) await scene.drive.log(run, line);
      await scene.drive.finish(run, "done");
      await run.untilEnded();
      await scene.eventually(async () => {
        let text = "";
        let page: LogPage | undefined;
        for (let count = 0; page === undefined || page.cursor !== undefined; count++) {
          assert.ok(count < 100, "the log has no end");
          page = await scene.adapter.logs(run.ref, page?.cursor, { signal: scene.signal });
          text += page.text;
        }
        assert.deepEqual(text.match(/kit line \w+/g), lines);
      });
    },
  }),
  requirement({
    id: "logs.resumed",
    behaviour: "logs",
    says: "A new instance goes on from a cursor: what follows, and nothing of what was read",
    source: "LogPage.cursor",
    drive: ["log"],
    adapter: ["logs"],
    async check(scene) {
      const run = await scene.start();
      await scene.drive.log(run, "kit line one");
      const { cursor } = await pageWith(scene, scene.adapter, run, undefined, "kit line one");
      assert.ok(cursor !== undefined, "a log that goes on has no cursor");
      await scene.drive.log(run, "kit line two");
      const page = await pageWith(scene, await scene.connect(), run, cursor, "kit line two");
      assert.ok(!page.text.includes("kit line one"), "what was read is there again");
    },
  }),
] as const;

function pageWith(
  scene: SceneWith<never, never>,
  adapter: WorkflowAdapter,
  run: SceneRun,
  cursor: string | undefined,
  line: string,
): Promise<LogPage> {
  return scene.eventually(async () => {
    const page = await adapter.logs?.(run.ref, cursor, { signal: scene.signal });
    if (!page?.text.includes(line)) assert.fail(`the log has no "${line}"`);
    return page;
  });
}
