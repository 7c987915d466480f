/** What GitHub refuses ends in a task that tells the truth; what it puts off is waited for. */
import { describe, expect, it } from "vitest";
import { latest } from "../emulator/src/protocol-state.js";
import type { GitHubActionsOptions } from "../src/index.js";
import { connect2025, connect2026 } from "./clients.js";
import { serveHere, session } from "./serving.js";
import { eventually, hello, PLAIN } from "./world.js";

const GENERATIONS = [
  ["2025-11-25", connect2025],
  ["2026-07-28", connect2026],
] as const;

async function served(
  connect: typeof connect2025,
  options: Partial<GitHubActionsOptions> = {},
  file?: string,
) {
  const world = await hello(file);
  const { url } = await serveHere(world.adapter(options));
  return { ...world, client: await session(connect, url) };
}

/** What it is, options, arguments, the workflow file, and what the client hears. */
type Refusal = [string, Partial<GitHubActionsOptions>, object, string, string];

const NOT_CHECKED_HERE = {
  inputs: { secret: { type: "string", required: false } },
} satisfies Partial<GitHubActionsOptions>;

describe.each(GENERATIONS)("a dispatch that GitHub refuses (%s)", (_, connect) => {
  it.each([
    ["422, no trigger at this ref", {}, {}, "on: push\njobs: {}\n", "no workflow_dispatch trigger"],
    ["422, unknown ref", { ref: "gone" }, {}, PLAIN, "branch or tag does not exist"],
    [
      "422, unexpected input",
      { ...NOT_CHECKED_HERE, correlationInput: false },
      { secret: "hunter2" },
      PLAIN,
      "does not declare an input",
    ],
    ["404, no such workflow", { workflow: "gone.yml" }, {}, PLAIN, "does not find the workflow"],
  ] satisfies Refusal[])("%s", async (_, options, args, file, words) => {
    const { server, state, client } = await served(connect, options, file);
    const handle = await client.start(args);
    const { status, error } = await client.end(handle);
    expect(status).toBe("failed");
    expect(error).toContain(words);
    expect(error).not.toContain("hunter2");
    expect(state.runs).toEqual([]);
    expect(server.dispatches.length).toBeLessThanOrEqual(2);
  });

  it.each([
    [403, "lacks a permission"],
    [404, "does not find the workflow"],
    [401, "does not accept the credentials"],
  ])("%i of the dispatch itself", async (status, words) => {
    const { server, client } = await served(connect);
    server.fault({ on: /dispatches$/, does: { status, body: { message: "no" } } });
    const ended = await client.end(await client.start());
    expect(ended.status).toBe("failed");
    expect(ended.error).toContain(words);
    expect(server.dispatches).toHaveLength(1);
  });
});

describe("a dispatch that GitHub puts off", () => {
  const inSeconds = (seconds: number) => `${Math.floor(Date.now() / 1000) + seconds}`;
  const body = { message: "You have exceeded a secondary rate limit" };

  it.each([
    ["429 with retry-after", { status: 429, body, headers: { "retry-after": "1" } }],
    ["403 with retry-after", { status: 403, body, headers: { "retry-after": "1" } }],
    [
      "403, the budget is used up",
      {
        status: 403,
        body,
        headers: { "x-ratelimit-remaining": "0", "x-ratelimit-reset": inSeconds(0) },
      },
    ],
  ])("%s: is sent when it is over, once", async (_, refusal) => {
    const { server, state, client } = await served(connect2025);
    server.fault({ on: /dispatches$/, does: refusal });
    const handle = await client.start();
    await eventually(async () => expect(state.runs).toHaveLength(1), 15_000);
    state.finish(state.runs[0]!, "success");
    expect((await client.end(handle)).run?.runId).toBe(String(state.runs[0]!.id));
    expect(server.dispatches).toHaveLength(2);
    expect(state.runs).toHaveLength(1);
  });

  it.each([403, 429])(
    "%i without a time: says so, sends nothing meanwhile, and can be cancelled",
    async (status) => {
      const { server, state, client } = await served(connect2026);
      server.fault({ on: /dispatches$/, does: { status, body } });
      const handle = await client.start();
      await eventually(async () => {
        const { status, statusMessage } = await client.look(handle);
        expect([status, statusMessage]).toEqual(["working", expect.stringContaining("rate limit")]);
      });
      await client.cancel(handle);
      await eventually(async () => expect((await client.look(handle)).status).toBe("cancelled"));
      expect(server.dispatches).toHaveLength(1);
      expect(state.runs).toEqual([]);
    },
  );

  it("a limit in the middle of a run: the task goes on, and ends with the run", async () => {
    const { server, state, client } = await served(connect2025);
    const handle = await client.start();
    state.set(state.runs[0]!, "in_progress");
    server.fault({
      on: /actions\/runs\/\d+$/,
      does: { status: 429, body, headers: { "retry-after": "1" } },
    });
    await eventually(async () => {
      await client.look(handle);
      expect(server.received.some((call) => call.status === 429)).toBe(true);
    });
    expect((await client.look(handle)).status).toBe("working");
    state.finish(state.runs[0]!, "success");
    expect((await client.end(handle)).run?.conclusion).toBe("success");
  });
});

describe("a run that GitHub loses", () => {
  it("ends as lost, and names what is gone", async () => {
    const { state, client } = await served(connect2025, { appearsWithinMs: 50 });
    const handle = await client.start();
    state.set(state.runs[0]!, "in_progress");
    await eventually(async () => expect((await client.look(handle)).statusMessage).toContain("jobs done"));
    state.runs[0]!.visible = false;
    const { status, error } = await client.end(handle);
    expect([status, error]).toEqual(["failed", expect.stringContaining("gone")]);
  });

  it("expired logs lose nothing else", async () => {
    const { state, client } = await served(connect2025);
    const handle = await client.start();
    const [run] = state.runs;
    state.addJob(run!, { name: "test", conclusion: "failure", log: null });
    state.finish(run!, "failure");
    const ended = await client.end(handle);
    expect(ended).toMatchObject({ isError: true, run: { conclusion: "failure" } });
    expect(ended.run?.jobs[0]?.name).toBe("test");
    expect(ended.run?.notes.join()).toMatch(/log/i);
    expect(latest(run!).jobs).toHaveLength(1);
  });
});
