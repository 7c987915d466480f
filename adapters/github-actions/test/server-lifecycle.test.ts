/** What happens to a task after its run has begun: cancels, late re-runs, deliveries, and very many jobs. */
import { describe, expect, it } from "vitest";
import { deliver, deliveryOf } from "../emulator/src/webhook.js";
import type { GitHubActionsOptions } from "../src/index.js";
import { connect2025, connect2026 } from "./clients.js";
import { serveHere, session } from "./serving.js";
import { eventually, hello } from "./world.js";

const SECRET = "It's a Secret to Everybody";
const HOOK = "/webhooks/github";

async function running(connect: typeof connect2025, options: Partial<GitHubActionsOptions> = {}) {
  const world = await hello();
  const adapter = world.adapter({ webhookSecret: SECRET, ...options });
  const { url } = await serveHere(adapter, { webhooks: { [HOOK]: "run_ci" } });
  const client = await session(connect, url);
  const handle = await client.start();
  const [run] = world.state.runs;
  world.state.set(run!, "in_progress");
  await eventually(async () => expect((await client.look(handle)).status).toBe("working"));
  const tell = () => deliver(new URL(HOOK, url), deliveryOf(world.server.url, "workflow_run", run!, SECRET));
  return { ...world, client, handle, run: run!, tell, url };
}

describe("a cancel while always() steps go on", () => {
  it("2026-07-28: works on until GitHub says that it is cancelled", async () => {
    const { state, client, handle, run } = await running(connect2026);
    state.addJob(run, {
      name: "clean up",
      status: "in_progress",
      steps: [{ name: "always()", status: "in_progress", conclusion: null }],
    });
    await client.cancel(handle);
    await eventually(async () => expect(run.cancels).toEqual(["cancel"]));
    await eventually(async () =>
      expect(await client.look(handle)).toMatchObject({
        status: "working",
        statusMessage: "0 of 1 jobs done, running: clean up / always()",
      }),
    );
    state.finish(run, "cancelled");
    await eventually(async () => expect((await client.look(handle)).status).toBe("cancelled"));
  });

  it("2025-11-25: cancelled at once and for ever, and the stop reaches GitHub", async () => {
    const { state, client, handle, run } = await running(connect2025);
    await client.cancel(handle);
    expect((await client.look(handle)).status).toBe("cancelled");
    await eventually(async () => expect(run.cancels.length).toBeGreaterThan(0));
    state.finish(run, "success");
    expect((await client.look(handle)).status).toBe("cancelled");
  });

  it("2026-07-28: a run that ends well in spite of it is told as it ended", async () => {
    const { server, state, client, handle, run, url } = await running(connect2026);
    server.fault({ on: /\/cancel$/, does: { status: 409, body: { message: "completed" } } });
    await client.cancel(handle);
    await eventually(async () => expect(server.calls(/POST .*\/cancel$/).length).toBeGreaterThan(0));
    state.finish(run, "success");
    // The session that has cancelled takes its task for cancelled; another one asks.
    await client.close();
    const other = await session(connect2026, url);
    expect(await other.end(handle)).toMatchObject({ status: "completed", run: { conclusion: "success" } });
  });

  it("by force, once it has gone on for too long", async () => {
    const { client, handle, run } = await running(connect2026, { forceCancelAfterMs: 500 });
    await client.cancel(handle);
    // The second stop is due a second after the first.
    await eventually(async () => expect((await client.look(handle)).status).toBe("cancelled"));
    expect(run.cancels).toEqual(["cancel", "force-cancel"]);
  });
});

describe.each([
  ["2025-11-25", connect2025],
  ["2026-07-28", connect2026],
] as const)("a re-run after our end (%s)", (_, connect) => {
  it("changes nothing, whatever deliveries come", async () => {
    const { server, state, client, handle, run, tell } = await running(connect);
    state.addJob(run, { name: "test", conclusion: "failure" });
    state.finish(run, "failure");
    const ended = await client.end(handle);
    expect(ended).toMatchObject({ isError: true, run: { attempt: 1, conclusion: "failure" } });

    state.addAttempt(run);
    state.set(run, "in_progress");
    expect(await tell()).toBe(202);
    const reads = server.calls(/GET .*\/runs\/\{run_id\}$/).length;
    expect(await client.end(handle)).toEqual(ended);
    state.finish(run, "success");
    expect(await tell()).toBe(202);
    expect(await client.end(handle)).toEqual(ended);
    expect(server.calls(/GET .*\/runs\/\{run_id\}$/)).toHaveLength(reads);
  });

  it("before our end was seen, the first attempt is told", async () => {
    const { state, client, handle, run } = await running(connect);
    state.addJob(run, { name: "test", conclusion: "failure" });
    state.finish(run, "failure");
    state.addAttempt(run);
    state.set(run, "in_progress");
    expect(await client.end(handle)).toMatchObject({ isError: true, run: { attempt: 1 } });
  });
});

describe("1,200 jobs", () => {
  it("are counted while they run and when they are done; the failed ones come first", async () => {
    const { state, client, handle, run, tell } = await running(connect2026);
    for (let index = 0; index < 1200; index += 1) {
      const conclusion = index < 600 ? (index === 599 ? "failure" : "success") : null;
      state.addJob(run, { name: `shard ${index}`, conclusion });
    }
    await eventually(
      async () => expect((await client.look(handle)).statusMessage).toBe("600 of 1200 jobs done, 1 failed"),
      15_000,
    );
    for (const job of run.attempts[0]!.jobs) {
      if (job.conclusion === null) Object.assign(job, { status: "completed", conclusion: "success" });
    }
    state.finish(run, "failure");
    // With so many pages of jobs, the next read by itself is a minute away.
    expect(await tell()).toBe(202);
    const { isError, run: result, text } = await client.end(handle);
    expect(isError).toBe(true);
    expect(result?.jobCounts).toMatchObject({ total: 1200, succeeded: 1199, failed: 1 });
    expect(result?.jobs).toHaveLength(300);
    expect(result?.jobs[0]?.name).toBe("shard 599");
    expect(text).toContain("shard 599");
    expect(result?.notes.join()).toContain("900 more");
  }, 60_000);
});
