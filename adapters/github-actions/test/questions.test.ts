import { describe, expect, it } from "vitest";
import type { GitHubActionsOptions } from "../src/index.js";
import { hello, refusal, Task } from "./world.js";

async function waiting(options: Partial<GitHubActionsOptions> = {}) {
  const world = await hello();
  const adapter = world.adapter(options);
  const task = await new Task().start(adapter);
  const run = world.state.runs[0]!;
  world.state.set(run, "waiting");
  const answer = (
    key: string,
    content: object | undefined,
    action: "accept" | "decline" | "cancel" = "accept",
  ) =>
    adapter.answer!(
      task.ref!,
      key,
      { action, ...(content && { content: { ...content } }) },
      { signal: task.signal },
    );
  return { ...world, adapter, task, run, answer, read: () => task.read(adapter) };
}

describe("deployments that wait for a review", () => {
  it("are one question per environment", async () => {
    const { state, run, read } = await waiting();
    state.addPending(run, "staging");
    state.addPending(run, "production", { reviewers: ["alice"] });
    state.addPending(run, "vault", { mayApprove: false, reviewers: ["bob", "ops"] });
    const asked = await read();
    expect(asked.status).toBe("input_required");
    expect(asked.questions?.map(({ message }) => message)).toEqual([
      expect.stringContaining('Deploy to "staging"?'),
      expect.stringContaining('Deploy to "production"?'),
    ]);
    expect(asked.questions?.[0]?.schema).toMatchObject({ required: ["decision"] });
    expect(new Set(asked.questions?.map(({ key }) => key)).size).toBe(2);
    expect(asked.message).toContain('"vault" waits for a review by bob, ops');
  });

  it.each([
    ["approve", { decision: "approve", comment: "ship it" }, "accept", "approved", "ship it"],
    ["reject", { decision: "reject" }, "accept", "rejected", ""],
    ["decline", undefined, "decline", "rejected", ""],
  ] as const)("%s", async (_, content, action, reviewed, comment) => {
    const { server, state, run, answer, read } = await waiting();
    const pending = state.addPending(run, "production");
    const [question] = (await read()).questions ?? [];
    await answer(question!.key, content, action);
    expect(run.reviews).toEqual([
      { environmentId: pending.environmentId, environment: "production", state: reviewed, comment },
    ]);
    expect(await read()).toMatchObject({ status: "working" });
    expect(server.calls(/POST .*pending_deployments/)).toHaveLength(1);
  });

  it("answers an environment whose id is above 2^53", async () => {
    const { state, run, answer, read } = await waiting();
    state.addPending(run, "production", { environmentId: 2n ** 53n + 1n });
    const [question] = (await read()).questions ?? [];
    await answer(question!.key, { decision: "approve" });
    expect(run.reviews[0]?.environmentId).toBe(9007199254740993n);
  });

  it("the same environment asking again is another question, and an answer to the first is too late", async () => {
    const { server, state, run, adapter, answer, read } = await waiting();
    state.addPending(run, "production", { environmentId: 5n });
    const [first] = (await read()).questions ?? [];
    await answer(first!.key, { decision: "approve" });
    state.addPending(run, "production", { environmentId: 5n });
    const [second] = (await read()).questions ?? [];
    expect(second?.key).not.toBe(first?.key);
    expect(await refusal(adapter, answer(first!.key, { decision: "approve" }))).toMatchObject({
      kind: "gone",
    });
    expect(server.calls(/POST .*pending_deployments/)).toHaveLength(1);
  });

  it("answered elsewhere: the question is gone, before and during the answer", async () => {
    const { server, state, run, adapter, answer, read } = await waiting();
    state.addPending(run, "production");
    const [question] = (await read()).questions ?? [];
    // Between our look and our answer, somebody else rejects it.
    server.fault({ on: /POST .*pending_deployments/, does: { status: 422, body: { message: "none" } } });
    const during = answer(question!.key, { decision: "approve" });
    expect(await refusal(adapter, during)).toMatchObject({ kind: "rejected" });
    run.pending = [];
    const after = answer(question!.key, { decision: "approve" });
    expect(await refusal(adapter, after)).toMatchObject({ kind: "gone", code: "QuestionGone" });
    expect((await read()).questions ?? []).toEqual([]);
  });

  it("that nobody here may approve are no question: the run works on, and says whom it waits for", async () => {
    const { state, run, read } = await waiting();
    state.addPending(run, "production", { mayApprove: false, reviewers: ["alice"] });
    expect(await read()).toMatchObject({
      status: "working",
      message: 'Environment "production" waits for a review by alice',
    });
  });

  it("a wait timer is no question", async () => {
    const { state, run, read } = await waiting();
    state.addPending(run, "production", { mayApprove: false, waitTimer: 30 });
    expect((await read()).message).toContain("timer of 30 minutes");
  });

  it("are seen while other jobs of the run go on", async () => {
    const { state, run, read } = await waiting();
    state.set(run, "in_progress");
    state.addJob(run, { name: "build", status: "in_progress" });
    state.addJob(run, { name: "deploy", status: "waiting" });
    state.addPending(run, "production");
    expect(await read()).toMatchObject({ status: "input_required", progress: { done: 0, total: 2 } });
  });

  it("an answer that says nothing is refused, a dismissed one changes nothing", async () => {
    const { server, state, run, adapter, answer, read } = await waiting();
    state.addPending(run, "production");
    const [question] = (await read()).questions ?? [];
    const unclear = answer(question!.key, { decision: "perhaps" });
    expect(await refusal(adapter, unclear)).toMatchObject({ kind: "rejected", code: "InvalidAnswer" });
    await answer(question!.key, undefined, "cancel");
    expect(server.calls(/POST .*pending_deployments/)).toHaveLength(0);
    expect(await refusal(adapter, answer("nonsense", {}))).toMatchObject({ kind: "gone" });
  });

  it("is not sent twice when its answer was lost", async () => {
    const { server, state, run, adapter, answer, read } = await waiting();
    state.addPending(run, "production");
    const [question] = (await read()).questions ?? [];
    server.fault({ on: /POST .*pending_deployments/, does: "cut-after" });
    const lost = answer(question!.key, { decision: "approve" });
    expect(await refusal(adapter, lost)).toMatchObject({ kind: "ambiguous" });
    const again = answer(question!.key, { decision: "approve" });
    expect(await refusal(adapter, again)).toMatchObject({ kind: "gone" });
    expect(run.reviews).toHaveLength(1);
  });
});

describe("a pull request from a fork", () => {
  it("waits for approval, which is not an end", async () => {
    const { state, run, answer, read } = await waiting();
    state.finish(run, "action_required");
    const asked = await read();
    expect(asked).toMatchObject({ native: "completed/action_required", status: "input_required" });
    await answer(asked.questions![0]!.key, undefined);
    expect(run.approved).toBe(true);
    expect(await read()).toMatchObject({ status: "submitted" });
  });

  it("cannot be declined on GitHub, and the answer says so", async () => {
    const { state, run, adapter, answer, read } = await waiting();
    state.finish(run, "action_required");
    const [question] = (await read()).questions ?? [];
    const declined = answer(question!.key, undefined, "decline");
    expect(await refusal(adapter, declined)).toMatchObject({ kind: "rejected", code: "NotDeclinable" });
  });

  it("is no question to who may not write", async () => {
    const { state, run, repository, read } = await waiting();
    repository.mayPush = false;
    state.finish(run, "action_required");
    const held = await read();
    expect(held).toMatchObject({ status: "working" });
    expect(held.message).toContain("maintainer");
  });
});

describe("cancelling", () => {
  it("is a request: the run goes on through its always() steps", async () => {
    const { state, run, task, adapter } = await waiting();
    state.set(run, "in_progress");
    await task.stop(adapter);
    expect(run.cancels).toEqual(["cancel"]);
    expect(await task.read(adapter)).toMatchObject({ status: "working" });
    await task.stop(adapter, 3000, 1);
    state.finish(run, "cancelled");
    expect(await task.read(adapter)).toMatchObject({ status: "cancelled" });
  });

  it("of a run that ended first tells its true end", async () => {
    const { server, state, run, task, adapter } = await waiting();
    state.set(run, "in_progress");
    await task.read(adapter);
    server.fault({ on: /\/cancel$/, does: { status: 409, body: { message: "completed" } } });
    await task.stop(adapter);
    state.finish(run, "success");
    await task.stop(adapter, 1000, 1);
    expect(server.calls(/\/cancel$/)).toHaveLength(1);
    expect(await task.read(adapter)).toMatchObject({ status: "completed", native: "completed/success" });
  });

  it("uses force only where it is configured, and only after the delay", async () => {
    const { state, run, task, adapter } = await waiting({ forceCancelAfterMs: 60_000 });
    state.set(run, "in_progress");
    await task.stop(adapter);
    await task.stop(adapter, 30_000, 3);
    expect(run.cancels).toEqual(["cancel", "cancel"]);
    await task.stop(adapter, 63_000, 6);
    expect(run.cancels.at(-1)).toBe("force-cancel");
    expect(await task.read(adapter)).toMatchObject({ status: "cancelled" });
  });

  it("does not touch a later attempt, and is not repeated by itself", async () => {
    const { server, state, run, task, adapter } = await waiting();
    state.finish(run, "failure");
    state.addAttempt(run);
    state.set(run, "in_progress");
    await task.stop(adapter);
    expect(run.cancels).toEqual([]);
    expect(server.calls(/\/cancel$/)).toHaveLength(0);
  });

  it("of a dispatch whose run is not there yet waits for it", async () => {
    const { server, state, adapter } = await hello();
    server.mode = "silent";
    state.hideNewRuns = true;
    const instance = adapter();
    const task = await new Task().start(instance);
    expect(await refusal(instance, task.stop(instance))).toMatchObject({ kind: "retry" });
    state.reveal(...state.runs);
    await task.stop(instance);
    expect(state.runs[0]?.cancels).toEqual(["cancel"]);
  });

  it("of a run that waits for approval says that GitHub cannot", async () => {
    const { state, run, task, adapter } = await waiting();
    state.finish(run, "action_required");
    expect(await refusal(adapter, task.stop(adapter))).toMatchObject({ code: "NotCancellable" });
  });
});
