import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";
import { eventually, hello, PLAIN, refusal, Task } from "./world.js";

const CHILD = fileURLToPath(new URL("dispatch-child.mjs", import.meta.url));

beforeAll(() => {
  expect(existsSync(new URL("../dist/index.js", import.meta.url)), "run `tsc -b` first").toBe(true);
});

/** Starts a run in a process that is killed (SIGKILL) when its dispatch has arrived. */
async function killedStart(file?: string) {
  const world = await hello(file);
  // The answer never comes, so the process dies between "sent" and "told".
  world.server.fault({ on: /dispatches/, does: "hang" });
  const task = new Task();
  const child = spawn(process.execPath, [CHILD, JSON.stringify(world.options), task.key], { stdio: "pipe" });
  const exited = once(child, "exit");
  await eventually(async () => expect(world.server.dispatches).toHaveLength(1));
  child.kill("SIGKILL");
  expect(await exited).toEqual([null, "SIGKILL"]);
  return { ...world, task };
}

describe("SIGKILL right after the dispatch left", () => {
  it("a new process finds the run by its key, and dispatches nothing", async () => {
    const { server, state, adapter, task } = await killedStart();
    const fresh = adapter();
    const found = await task.find(fresh);
    expect(found?.ref).toEqual({ owner: "octo", repo: "hello", runId: String(state.runs[0]!.id) });
    task.bind(found!);
    state.finish(state.runs[0]!, "success");
    expect(await task.read(fresh)).toMatchObject({ status: "completed" });
    expect(server.dispatches).toHaveLength(1);
  });

  it("also when the run appears late", async () => {
    const { server, state, adapter, task } = await killedStart();
    state.runs[0]!.visible = false;
    for (let tries = 0; tries < 3; tries += 1) {
      expect(await refusal(adapter(), task.find(adapter()))).toMatchObject({ kind: "retry" });
    }
    state.reveal(...state.runs);
    expect((await task.find(adapter()))?.claim).toBe(String(state.runs[0]!.id));
    expect(server.dispatches).toHaveLength(1);
  });

  it("without a key in the run's name, it takes the only run there is, or says that there are several", async () => {
    const { server, state, repository, adapter, task } = await killedStart(PLAIN);
    const found = await eventually(() => task.find(adapter()));
    expect(found?.claim).toBe(String(state.runs[0]!.id));
    const other = state.addRun(repository, { event: "workflow_dispatch" });
    const verdict = await refusal(adapter(), task.find(adapter()));
    expect(verdict).toMatchObject({ kind: "rejected", code: "AmbiguousRun" });
    expect(verdict.message).toContain(String(other.id));
    expect(server.dispatches).toHaveLength(1);
  });
});
