/** Dispatches in the same second, from two server processes on one SQLite file: no two tasks may share a run. */
import { describe, expect, it } from "vitest";
import type { DispatchMode } from "../emulator/src/protocol-routes.js";
import { connect2025, type Ending } from "./clients.js";
import { home, serveProcess, session } from "./serving.js";
import { CORRELATED, eventually, hello, PLAIN } from "./world.js";

/** Starts `count` tasks at once, turn by turn on two servers. */
async function crowd(file: string, mode: DispatchMode, count: number, input: (index: number) => object) {
  const world = await hello(file);
  world.server.mode = mode;
  const folder = await home();
  const options = { ...world.options, settleMs: 600 };
  // Nobody dies here, so that a lease which a busy machine renews late is not taken for a crash.
  const serve = () => serveProcess(folder, options, { leaseMs: 10_000 });
  const servers = await Promise.all([serve(), serve()]);
  const sessions = await Promise.all(servers.map(({ url }) => session(connect2025, url)));
  const begin = async () => {
    const started = Array.from({ length: count }, async (_, index) => {
      const client = sessions[index % 2]!;
      return { client, handle: await client.start(input(index)) };
    });
    const tasks = await Promise.all(started);
    await eventually(async () => expect(world.server.dispatches).toHaveLength(count), 15_000);
    return tasks;
  };
  const { state } = world;
  const endings = async (tasks: Awaited<ReturnType<typeof begin>>): Promise<readonly Ending[]> => {
    for (const run of state.runs) state.finish(run, "success");
    return Promise.all(tasks.map(({ client, handle }) => client.end(handle)));
  };
  return { ...world, begin, endings };
}

describe("six dispatches at once, over two servers", () => {
  it.each([
    ["answered with the run's id", "details"],
    ["answered with 204", "silent"],
  ] as const)("%s, with a key in the run's name: each has its own", async (_, mode) => {
    const { server, state, begin, endings } = await crowd(CORRELATED, mode, 6, (index) => ({
      retries: index,
    }));
    const ended = await endings(await begin());
    const expected = ended.map((_, index) => {
      const run = state.runs.find(({ inputs }) => inputs["retries"] === String(index));
      return String(run?.id);
    });
    expect(ended.map(({ run }) => run?.runId)).toEqual(expected);
    expect(server.dispatches).toHaveLength(6);
  });

  it("all runs appear late and in one moment, and still each key finds its own", async () => {
    const { state, begin, endings } = await crowd(CORRELATED, "silent", 6, (index) => ({ retries: index }));
    state.hideNewRuns = true;
    const tasks = await begin();
    state.reveal(...state.runs);
    const ended = await endings(tasks);
    for (const [index, { run }] of ended.entries()) {
      const own = state.runs.find(({ id }) => String(id) === run?.runId);
      expect(own?.inputs["retries"]).toBe(String(index));
    }
  });

  it("answered with the run's id, without a key: each has its own", async () => {
    const { state, begin, endings } = await crowd(PLAIN, "details", 6, (index) => ({ suite: `s${index}` }));
    const ended = await endings(await begin());
    expect(ended.map(({ error }) => error)).toEqual(Array(6).fill(undefined));
    for (const [index, { run }] of ended.entries()) {
      const own = state.runs.find(({ id }) => String(id) === run?.runId);
      expect(own?.inputs["suite"]).toBe(`s${index}`);
    }
  });

  it("with neither id nor key: nobody has another's run; who cannot tell says which it could be", async () => {
    const { server, state, begin, endings } = await crowd(PLAIN, "silent", 6, (index) => ({
      suite: `s${index}`,
    }));
    const ended = await endings(await begin());
    const ids = ended.flatMap(({ run }) => (run === undefined ? [] : [run.runId]));
    expect(new Set(ids).size).toBe(ids.length);
    for (const { status, run, error } of ended) {
      if (run !== undefined) continue;
      expect(status).toBe("failed");
      expect(error).toMatch(/could each be it|appeared within|Start outcome unknown/);
      expect(state.runs.some(({ id }) => error?.includes(String(id)))).toBe(true);
    }
    expect(server.dispatches).toHaveLength(6);
  });
});
