import assert from "node:assert/strict";
import { requirement, type SceneWith } from "../requirement.js";
import { hasEnded } from "../scene.js";

/** Every character of a key counts, and every run has a name of its own. */
export const ids = [
  requirement({
    id: "ids.last-character",
    behaviour: "ids",
    says: "Two keys that differ in the last character, with the same input, are two runs with two refs",
    source: "StartRequest.key",
    drive: ["finish"],
    async check(scene) {
      const stem = scene.key().slice(0, 25);
      await assertTwoRuns(scene, `${stem}a`, `${stem}b`);
    },
  }),
  requirement({
    id: "ids.digits",
    behaviour: "ids",
    says: "A key of digits is text, not a number",
    source: "StartRequest.key",
    drive: ["finish"],
    async check(scene) {
      await assertTwoRuns(scene, "90071992547409920001000001", "90071992547409920002000001");
    },
  }),
] as const;

async function assertTwoRuns(scene: SceneWith<"finish", never>, a: string, b: string): Promise<void> {
  const first = await scene.start({ key: a });
  const second = await scene.start({ key: b });
  await scene.drive.finish(first, "done");
  await first.untilStatus("completed");
  assert.ok(!hasEnded((await second.read()).status), "the end of one is the end of the other");
  assert.notDeepEqual(first.ref, second.ref);
}
