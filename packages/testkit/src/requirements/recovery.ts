import assert from "node:assert/strict";
import { requirement } from "../requirement.js";
import { acceptance } from "./questions.js";

/** A new process has the ref and the key, as JSON, and nothing else. */
export const recovery = [
  requirement({
    id: "recovery.read",
    behaviour: "recovery",
    says: "A new instance reads a run that it did not start",
    source: "RunRef",
    drive: ["finish"],
    async check(scene) {
      const run = await scene.start();
      await run.until("a run that can be read", () => true);
      const recovered = run.over(await scene.connect());
      const { status } = await recovered.read();
      assert.ok(["submitted", "working", "unchanged"].includes(status), `the run is told as ${status}`);
      await scene.drive.finish(run, "done");
      await recovered.untilStatus("completed");
    },
  }),
  requirement({
    id: "recovery.stop",
    behaviour: "recovery",
    says: "A new instance stops a run that it did not start",
    source: "WorkflowAdapter.stop",
    adapter: ["stop"],
    async check(scene) {
      const run = await scene.start();
      await run.until("a run that can be read", () => true);
      await run.over(await scene.connect()).stop();
      await run.untilEnded();
    },
  }),
  requirement({
    id: "recovery.answer",
    behaviour: "recovery",
    says: "A new instance answers a question that it did not read",
    source: "WorkflowAdapter.answer",
    drive: ["ask", "answers"],
    adapter: ["answer"],
    async check(scene) {
      const { run, question } = await scene.startAsking();
      const later = await scene.connect();
      await later.answer?.(run.ref, question.key, acceptance(question), { signal: scene.signal });
      assert.ok((await scene.drive.answers(run)).length > 0, "the answer did not arrive");
    },
  }),
  requirement({
    id: "recovery.find",
    behaviour: "recovery",
    says: "A new instance finds a run that it did not start",
    source: "WorkflowAdapter.find",
    drive: ["finish"],
    adapter: ["find"],
    async check(scene) {
      const run = await scene.start();
      const later = await scene.connect();
      const found = await scene.eventually(async () => {
        return (await scene.find(run.key, later)) ?? assert.fail("not found");
      });
      await scene.drive.finish(run, "done");
      await scene.adopt(run.key, run.input, found, later).untilEnded();
    },
  }),
] as const;
