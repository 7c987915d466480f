import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import { requirement } from "../requirement.js";
import { acceptance } from "./questions.js";

/** Core sets deadlines; the signal is how an adapter hears of them. */
export const deadline = [
  requirement({
    id: "deadline.sound",
    behaviour: "deadline",
    says: "`startTimeoutMs` and `appearsWithinMs` are positive numbers of milliseconds, where they are",
    source: "WorkflowAdapter.startTimeoutMs",
    async check({ adapter: { startTimeoutMs, appearsWithinMs } }) {
      for (const value of [startTimeoutMs, appearsWithinMs]) {
        assert.ok(value === undefined || (Number.isFinite(value) && value > 0), `${value} ms`);
      }
    },
  }),
  requirement({
    id: "deadline.before-start",
    behaviour: "deadline",
    says: "A start whose signal is aborted already throws and starts nothing",
    source: "CallContext.signal",
    drive: ["runs"],
    async check(scene) {
      const before = await scene.drive.runs();
      await scene.refusal(scene.start({ signal: AbortSignal.abort() }));
      assert.equal(await scene.drive.runs(), before);
    },
  }),
  requirement({
    id: "deadline.start",
    behaviour: "deadline",
    says: "A start that hangs throws when it is aborted",
    source: "CallContext.signal",
    drive: ["hang"],
    async check(scene) {
      await scene.drive.hang();
      await assertAborts(scene.patienceMs, (signal) => scene.start({ signal }));
    },
  }),
  requirement({
    id: "deadline.read",
    behaviour: "deadline",
    says: "A read that hangs throws when it is aborted",
    source: "CallContext.signal",
    drive: ["hang"],
    async check(scene) {
      const run = await scene.start();
      await run.until("a run that can be read", () => true);
      await scene.drive.hang();
      await assertAborts(scene.patienceMs, (signal) => run.read(signal));
    },
  }),
  requirement({
    id: "deadline.stop",
    behaviour: "deadline",
    says: "A stop that hangs throws when it is aborted",
    source: "CallContext.signal",
    drive: ["hang"],
    adapter: ["stop"],
    async check(scene) {
      const run = await scene.start();
      await run.until("a run that can be read", () => true);
      await scene.drive.hang();
      await assertAborts(scene.patienceMs, (signal) => run.stop(signal));
    },
  }),
  requirement({
    id: "deadline.find",
    behaviour: "deadline",
    says: "A find that hangs throws when it is aborted",
    source: "CallContext.signal",
    drive: ["hang"],
    adapter: ["find"],
    async check(scene) {
      await scene.drive.hang();
      await assertAborts(scene.patienceMs, (signal) => scene.find(scene.key(), scene.adapter, signal));
    },
  }),
  requirement({
    id: "deadline.answer",
    behaviour: "deadline",
    says: "An answer that hangs throws when it is aborted",
    source: "CallContext.signal",
    drive: ["hang", "ask"],
    adapter: ["answer"],
    async check(scene) {
      const { run, question } = await scene.startAsking();
      await scene.drive.hang();
      await assertAborts(scene.patienceMs, (signal) =>
        scene.adapter.answer(run.ref, question.key, acceptance(question), { signal }),
      );
    },
  }),
  requirement({
    id: "deadline.logs",
    behaviour: "deadline",
    says: "A log page that hangs throws when it is aborted",
    source: "CallContext.signal",
    drive: ["hang"],
    adapter: ["logs"],
    async check(scene) {
      const run = await scene.start();
      await run.until("a run that can be read", () => true);
      await scene.drive.hang();
      await assertAborts(scene.patienceMs, (signal) => scene.adapter.logs(run.ref, undefined, { signal }));
    },
  }),
] as const;

/** Aborts a call that hangs, once it had the time to reach the engine, and expects it to throw. */
async function assertAborts(
  patienceMs: number,
  call: (signal: AbortSignal) => Promise<unknown>,
): Promise<void> {
  const controller = new AbortController();
  const outcome = call(controller.signal).then(
    () => "went through",
    () => "threw",
  );
  // A call that ends by itself before the abort proves nothing about the signal.
  const early = await Promise.race([outcome, delay(50, "hangs")]);
  assert.equal(early, "hangs", `the call ${early} although the engine hangs`);
  controller.abort();
  const over = new AbortController();
  const late = delay(patienceMs / 4, "went on", { signal: over.signal });
  late.catch(() => undefined);
  assert.equal(await Promise.race([outcome, late]), "threw", "the call went on after the abort");
  over.abort();
}
