/** Servers that are killed (SIGKILL) between a dispatch and the knowledge of its run, and the servers after them. */
import { describe, expect, it } from "vitest";
import { connect2025, connect2026 } from "./clients.js";
import { home, serveProcess, session } from "./serving.js";
import { eventually, hello, PLAIN } from "./world.js";

const GENERATIONS = [
  ["2025-11-25", connect2025],
  ["2026-07-28", connect2026],
] as const;

/** A server whose task's dispatch has arrived; what becomes of the answer is up to the test. */
async function dispatched(connect: typeof connect2025, file?: string) {
  const world = await hello(file);
  const folder = await home();
  const first = await serveProcess(folder, world.options);
  const before = await session(connect, first.url);
  const restart = async () => {
    await first.kill();
    const { url } = await serveProcess(folder, world.options);
    return session(connect, url);
  };
  return { ...world, before, restart };
}

describe.each(GENERATIONS)("killed right after the dispatch left (%s)", (_, connect) => {
  it("ends with the run that shows the task's key, which appears late and beside others", async () => {
    const { server, state, repository, before, restart } = await dispatched(connect);
    state.hideNewRuns = true;
    server.fault({ on: /dispatches$/, does: "hang" });
    const handle = await before.start({ suite: "all" });
    await eventually(async () => expect(server.dispatches).toHaveLength(1));
    const [mine] = state.runs;
    state.hideNewRuns = false;
    state.addRun(repository, { event: "workflow_dispatch" });
    const after = await restart();
    expect((await after.look(handle)).status).toBe("working");
    // It looks, and does not take the other run.
    await eventually(async () => expect(server.calls(/GET .*\/runs$/).length).toBeGreaterThan(0));
    expect((await after.look(handle)).status).toBe("working");
    state.reveal(mine!);
    state.finish(mine!, "success");
    state.finish(state.runs[1]!, "failure");
    const { status, run } = await after.end(handle);
    expect([status, run?.runId, run?.conclusion]).toEqual(["completed", String(mine!.id), "success"]);
    expect(server.dispatches).toHaveLength(1);
  });

  it("without a key, ends with the only run that there is", async () => {
    const { server, state, before, restart } = await dispatched(connect, PLAIN);
    server.fault({ on: /dispatches$/, does: "hang" });
    const handle = await before.start();
    await eventually(async () => expect(server.dispatches).toHaveLength(1));
    const after = await restart();
    state.finish(state.runs[0]!, "success");
    expect((await after.end(handle)).run?.runId).toBe(String(state.runs[0]!.id));
    expect(server.dispatches).toHaveLength(1);
  });

  it("without a key and with several runs, says plainly which it could not tell apart, and starts nothing", async () => {
    const { server, state, repository, before, restart } = await dispatched(connect, PLAIN);
    server.fault({ on: /dispatches$/, does: "hang" });
    const handle = await before.start();
    await eventually(async () => expect(server.dispatches).toHaveLength(1));
    const other = state.addRun(repository, { event: "workflow_dispatch" });
    const after = await restart();
    const { status, error } = await after.end(handle);
    expect(status).toBe("failed");
    expect(error).toContain("Start outcome unknown");
    for (const run of [state.runs[0]!, other]) expect(error).toContain(String(run.id));
    expect(server.dispatches).toHaveLength(1);
  });
});

describe.each(GENERATIONS)("killed between the 204 and its run (%s)", (_, connect) => {
  it("ends with the run that shows the task's key", async () => {
    const { server, state, repository, before, restart } = await dispatched(connect);
    server.mode = "silent";
    state.hideNewRuns = true;
    const handle = await before.start();
    await eventually(async () => expect((await before.look(handle)).statusMessage).toContain("accepted"));
    state.hideNewRuns = false;
    const other = state.addRun(repository, { event: "workflow_dispatch" });
    const after = await restart();
    state.reveal(...state.runs);
    state.finish(other, "failure");
    state.finish(state.runs[0]!, "success");
    expect(await after.end(handle)).toMatchObject({
      status: "completed",
      run: { runId: String(state.runs[0]!.id), conclusion: "success" },
    });
    expect(server.dispatches).toHaveLength(1);
  });

  it("without a key, names the runs that it could not tell apart", async () => {
    const { server, state, repository, before, restart } = await dispatched(connect, PLAIN);
    server.mode = "silent";
    state.hideNewRuns = true;
    const handle = await before.start();
    await eventually(async () => expect((await before.look(handle)).statusMessage).toContain("accepted"));
    const other = state.addRun(repository, { event: "workflow_dispatch" });
    const after = await restart();
    state.reveal(...state.runs);
    const { status, error } = await after.end(handle);
    expect(status).toBe("failed");
    for (const run of [state.runs[0]!, other]) expect(error).toContain(String(run.id));
    expect(server.dispatches).toHaveLength(1);
  });
});

it("killed before the dispatch left: it is sent once, when no run of it can come any more", async () => {
  const { server, state, options } = await hello();
  const folder = await home();
  const patient = { ...options, appearsWithinMs: 1500 };
  server.fault({ on: /GET .*\/contents\//, does: "hang" });
  const first = await serveProcess(folder, patient);
  const before = await session(connect2025, first.url);
  const handle = await before.start();
  await eventually(async () => expect(server.calls(/GET .*\/contents\//)).toHaveLength(1));
  await first.kill();
  const { url } = await serveProcess(folder, patient);
  const after = await session(connect2025, url);
  await eventually(async () => expect(server.dispatches).toHaveLength(1), 15_000);
  state.finish(state.runs[0]!, "success");
  expect((await after.end(handle)).run?.runId).toBe(String(state.runs[0]!.id));
  expect(state.runs).toHaveLength(1);
});
