import assert from "node:assert/strict";
import { requirement } from "../requirement.js";

/** Engines learn new words; adapters must not guess what they mean. */
export const words = [
  requirement({
    id: "words.unknown",
    behaviour: "words",
    says: "A native word that the adapter does not know is told as `native`, with the status `unchanged`",
    source: "RunStatus",
    drive: ["unknownWord"],
    async check(scene) {
      const run = await scene.start();
      await run.until("a run that can be read", () => true);
      const word = await scene.drive.unknownWord(run);
      const state = await run.until(`the word ${word}`, ({ native }) => native.includes(word));
      assert.equal(state.status, "unchanged");
    },
  }),
  requirement({
    id: "words.known-again",
    behaviour: "words",
    says: "After an unknown word the run's end is told as ever",
    source: "RunStatus",
    drive: ["unknownWord", "finish"],
    async check(scene) {
      const run = await scene.start();
      await run.until("a run that can be read", () => true);
      await scene.drive.unknownWord(run);
      await run.read();
      await scene.drive.finish(run, "done");
      await run.untilStatus("completed");
    },
  }),
] as const;
