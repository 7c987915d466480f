import assert from "node:assert/strict";
import { requirement } from "../requirement.js";
import { verdictOf } from "../scene.js";

const RETRY_AFTER_MS = 7000;

/** What an error means decides what core does next: start again, give up, or find out. */
export const errors = [
  requirement({
    id: "errors.throttled-start",
    behaviour: "errors",
    says: "A throttled start is `retry` and starts nothing",
    source: "ErrorVerdict.kind",
    drive: ["throttle", "runs"],
    async check(scene) {
      const before = await scene.drive.runs();
      await scene.drive.throttle(RETRY_AFTER_MS);
      const { verdict } = await scene.refusal(scene.start());
      assert.equal(verdict.kind, "retry");
      assert.equal(await scene.drive.runs(), before);
    },
  }),
  requirement({
    id: "errors.throttled-read",
    behaviour: "errors",
    says: "A throttled read is `retry`, or a state that is `unchanged`",
    source: "ErrorVerdict.kind",
    drive: ["throttle"],
    async check(scene) {
      const run = await scene.start();
      await run.until("a run that can be read", () => true);
      await scene.drive.throttle(RETRY_AFTER_MS);
      const kind = await run.read().then(
        (state) => state.status,
        (error: unknown) => verdictOf(scene.adapter, error).kind,
      );
      assert.ok(kind === "retry" || kind === "unchanged", `it is ${kind}`);
    },
  }),
  requirement({
    id: "errors.retry-after",
    behaviour: "errors",
    says: "The time that a throttling engine asks for is told in milliseconds",
    source: "ErrorVerdict.retryAfterMs",
    drive: ["throttle"],
    async check(scene) {
      await scene.drive.throttle(RETRY_AFTER_MS);
      const { verdict } = await scene.refusal(scene.start());
      const { retryAfterMs = 0 } = verdict;
      // Engines count in whole seconds, and some add a margin.
      const isSound = retryAfterMs >= RETRY_AFTER_MS - 1000 && retryAfterMs <= RETRY_AFTER_MS * 10;
      assert.ok(isSound, `${retryAfterMs} ms instead of ${RETRY_AFTER_MS} ms`);
    },
  }),
  requirement({
    id: "errors.rejected",
    behaviour: "errors",
    says: "A start that the engine refuses for good is `rejected`, with a code",
    source: "ErrorVerdict.kind",
    drive: ["reject"],
    async check(scene) {
      await scene.drive.reject();
      const { verdict } = await scene.refusal(scene.start());
      assert.equal(verdict.kind, "rejected");
      assert.ok(verdict.code, "no code");
    },
  }),
  requirement({
    id: "errors.disconnected",
    behaviour: "errors",
    says: "A broken connection is `ambiguous` or `retry`: never `rejected`, never `gone`",
    source: "ErrorVerdict.kind",
    drive: ["disconnect"],
    async check(scene) {
      const run = await scene.start();
      await run.until("a run that can be read", () => true);
      await scene.drive.disconnect();
      for (const call of [() => scene.start(), () => run.read()]) {
        const { verdict } = await scene.refusal(call());
        assert.ok(verdict.kind === "ambiguous" || verdict.kind === "retry", `it is ${verdict.kind}`);
      }
    },
  }),
  requirement({
    id: "errors.lost-start",
    behaviour: "errors",
    says: "A start whose response was lost is `ambiguous`: it may have happened",
    source: "ErrorVerdict.kind",
    drive: ["loseStartResponse"],
    async check(scene) {
      await scene.drive.loseStartResponse();
      const { verdict } = await scene.refusal(scene.start());
      assert.equal(verdict.kind, "ambiguous");
    },
  }),
  requirement({
    id: "errors.strange",
    behaviour: "errors",
    says: "`explain` takes anything that can be thrown, and does not take it for `rejected` or `gone`",
    source: "WorkflowAdapter.explain",
    adapter: ["explain"],
    async check({ adapter }) {
      const cyclic: Record<string, unknown> = {};
      cyclic["cause"] = cyclic;
      const thrown = [
        new Error("strange"),
        new TypeError("x"),
        null,
        undefined,
        "text",
        42,
        1n,
        {},
        [],
        cyclic,
      ];
      for (const value of thrown) {
        const kind = adapter.explain(value)?.kind ?? "ambiguous";
        assert.ok(kind === "ambiguous" || kind === "retry", `${typeof value} is taken for ${kind}`);
      }
    },
  }),
] as const;
