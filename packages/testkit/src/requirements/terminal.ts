import assert from "node:assert/strict";
import { requirement } from "../requirement.js";
import { hasEnded } from "../scene.js";

/** What has ended stays ended. */
export const terminal = [
  requirement({
    id: "terminal.stays",
    behaviour: "terminal",
    says: "A run that has ended is told with the same status and outcome by every later read",
    source: "RunState",
    drive: ["finish"],
    async check(scene) {
      const run = await scene.start();
      await scene.drive.finish(run, "done");
      const { status, output } = await run.untilEnded();
      for (let read = 0; read < 5; read++) {
        const later = await run.read();
        assert.deepEqual({ status: later.status, output: later.output }, { status, output });
      }
    },
  }),
  requirement({
    id: "terminal.revived",
    behaviour: "terminal",
    says: "A run that is revived after its end can be told apart: same end as before, or a higher `attempt`",
    source: "RunState.attempt",
    drive: ["finish", "revive"],
    async check(scene) {
      const run = await scene.start();
      await scene.drive.finish(run, "done");
      const first = await run.untilEnded();
      await scene.drive.revive(run);
      for (let read = 0; read < 5; read++) {
        const { status, attempt } = await run.read();
        if (hasEnded(status) && status === first.status && attempt === first.attempt) continue;
        assert.ok(first.attempt !== undefined, "the first attempt has no number that core could pin");
        assert.ok(
          attempt !== undefined && attempt > first.attempt,
          `attempt ${attempt} after ${first.attempt}`,
        );
      }
    },
  }),
] as const;
