import assert from "node:assert/strict";
import type { RunState } from "@taskferry/core";
import { requirement } from "../requirement.js";
import { assertJson, hasEnded, verdictOf } from "../scene.js";

/** A read tells what the engine knows. */
export const read = [
  requirement({
    id: "read.active",
    behaviour: "read",
    says: "A run that goes on is `submitted` or `working`",
    source: "RunStatus",
    async check(scene) {
      const run = await scene.start();
      await run.until("submitted or working", ({ status }) => status === "submitted" || status === "working");
    },
  }),
  requirement({
    id: "read.queued",
    behaviour: "read",
    says: "A run in the engine's queue is `submitted`",
    source: "RunStatus",
    drive: ["queue"],
    async check(scene) {
      await scene.drive.queue();
      await (await scene.start()).untilStatus("submitted");
    },
  }),
  requirement({
    id: "read.output",
    behaviour: "read",
    says: "A run that ended well is `completed` with the value it returned",
    source: "RunOutput.value",
    drive: ["finish"],
    async check(scene) {
      const run = await scene.start();
      await scene.drive.finish(run, { answer: 42, parts: [1.5, true, null] });
      const state = await run.untilStatus("completed");
      assert.deepEqual(state.output?.value, { answer: 42, parts: [1.5, true, null] });
    },
  }),
  requirement({
    id: "read.failure",
    behaviour: "read",
    says: "A run that ended badly is `completed` with a failure that has a code and a message, not `failed`",
    source: "RunState.failure",
    drive: ["fail"],
    async check(scene) {
      const run = await scene.start();
      await scene.drive.fail(run, { code: "OutOfPaper", message: "The tray is empty" });
      const { status, failure } = await run.untilEnded();
      assert.equal(status, "completed");
      assert.ok(failure?.code, "no code");
      assert.ok(failure?.message, "no message");
    },
  }),
  requirement({
    id: "read.progress",
    behaviour: "read",
    says: "The progress that the run reports is told as it is",
    source: "RunState.progress",
    drive: ["progress"],
    async check(scene) {
      const run = await scene.start();
      await scene.drive.progress(run, 2, 5);
      await run.until("progress 2 of 5", ({ progress }) => progress?.done === 2 && progress.total === 5);
    },
  }),
  requirement({
    id: "read.repeatable",
    behaviour: "read",
    says: "Reads at the same time go through and tell the same",
    source: "WorkflowAdapter.read",
    async check(scene) {
      const run = await scene.start();
      await run.until("a run that can be read", () => true);
      const states = await Promise.all([1, 2, 3, 4].map(() => run.read()));
      assert.equal(new Set(states.map((state) => state.status)).size, 1);
    },
  }),
  requirement({
    id: "read.json",
    behaviour: "read",
    says: "Every state survives JSON",
    source: "WorkflowAdapter",
    drive: ["finish", "fail"],
    async check(scene) {
      const [good, bad] = [await scene.start(), await scene.start()];
      assertJson(await good.until("a state", () => true), "the state of a run at work");
      await scene.drive.finish(good, { done: true });
      assertJson(await good.untilEnded(), "the state of a run that ended well");
      await scene.drive.fail(bad, { code: "OutOfPaper", message: "The tray is empty" });
      assertJson(await bad.untilEnded(), "the state of a run that ended badly");
    },
  }),
  requirement({
    id: "read.well-formed",
    behaviour: "read",
    says: "A state has a native word, sound numbers, absolute URLs, and output or failure only where they belong",
    source: "RunState",
    drive: ["finish"],
    async check(scene) {
      const run = await scene.start();
      assertWellFormed(await run.until("a state", () => true));
      await scene.drive.finish(run, "done");
      assertWellFormed(await run.untilEnded());
    },
  }),
  requirement({
    id: "read.vanished",
    behaviour: "read",
    says: "A run that was deleted is `gone`, or ends as `failed` or `unknown` with what is known",
    source: "ErrorVerdict.kind",
    drive: ["vanish"],
    async check(scene) {
      const run = await scene.start();
      await run.until("a run that can be read", () => true);
      await scene.drive.vanish(run);
      await scene.eventually(async () => {
        const told = await run.read().catch((error: unknown) => verdictOf(scene.adapter, error));
        if ("kind" in told) return assert.equal(told.kind, "gone");
        assert.ok(told.status === "failed" || told.status === "unknown", `the run is ${told.status}`);
        assert.ok(told.failure, "no word about the loss");
      });
    },
  }),
] as const;

function assertWellFormed(state: RunState): void {
  assert.ok(typeof state.native === "string" && state.native !== "", "no native word");
  for (const [name, value] of Object.entries({
    attempt: state.attempt,
    nextReadMs: state.nextReadMs,
    "progress.done": state.progress?.done,
    "progress.total": state.progress?.total,
  })) {
    assert.ok(value === undefined || (Number.isFinite(value) && value >= 0), `${name} is ${value}`);
  }
  const links = [...(state.output?.links ?? []), ...(state.failure?.links ?? [])].map((link) => link.uri);
  for (const url of [state.url, ...links]) assert.ok(url === undefined || URL.canParse(url), `URL: ${url}`);
  assert.ok(
    state.output === undefined || state.status === "completed",
    "output of a run that is not completed",
  );
  assert.ok(state.failure === undefined || hasEnded(state.status), "failure of a run that has not ended");
  assert.ok(state.output === undefined || state.failure === undefined, "both output and failure");
}
