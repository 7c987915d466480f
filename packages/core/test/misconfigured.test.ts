/** Mistakes of a server's author: each is refused before anything is served, with words that say what to do. */
import { McpServer } from "@modelcontextprotocol/server";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  attach,
  checkOptions,
  createTaskEngine,
  defineWorkflow,
  serveHttp,
  type TaskEngineOptions,
  type WorkflowAdapter,
  type WorkflowOptions,
} from "../src/index.js";
import { sqliteStore } from "../src/store/sqlite.js";

const adapter: WorkflowAdapter = {
  engine: "none",
  start: async () => ({ ref: 1 }),
  read: async () => ({ native: "RUNNING", status: "working" }),
};

async function engineWith(options: Record<string, unknown> = {}) {
  const store = await sqliteStore({ path: ":memory:" });
  onTestFinished(() => store.close());
  const workflows = [defineWorkflow({ name: "work", adapter })];
  const engine = await createTaskEngine({ workflows, store, ...options } as TaskEngineOptions);
  onTestFinished(() => engine.close());
  return engine;
}

describe("createTaskEngine refuses", () => {
  const mistakes: readonly (readonly [string, Record<string, unknown>, RegExp])[] = [
    ["no workflows", { workflows: undefined }, /needs workflows/],
    ["no store", { store: undefined }, /await sqliteStore/],
    ["a store that was not awaited", { store: Promise.resolve({}) }, /await sqliteStore/],
    ["a limit of 0", { limits: { createPerMinute: 0 } }, /createPerMinute .* at least 1; got 0/],
    ["a limit that is a fraction", { limits: { concurrentTasks: 1.5 } }, /concurrentTasks .* got 1\.5/],
    ["a limit that is no number", { limits: { getPerMinute: Number.NaN } }, /getPerMinute .* got NaN/],
    [
      "a limit that there is not",
      { limits: { speed: 3 } },
      /no limit "speed"; the limits are createPerMinute/,
    ],
    ["a retention of 0", { retention: { defaultMs: 0 } }, /retention\.defaultMs/],
  ];
  test.each(mistakes)("%s", async (_what, options, words) => {
    await expect(engineWith(options)).rejects.toMatchObject({
      code: "configuration",
      message: expect.stringMatching(words),
    });
  });
});

describe("defineWorkflow refuses", () => {
  const mistakes: readonly (readonly [string, Record<string, unknown>, RegExp])[] = [
    ["no name", { name: undefined }, /Workflow name undefined/],
    ["a name that is no string", { name: 7 }, /Workflow name 7/],
    ["no adapter", { adapter: undefined }, /needs an adapter/],
    [
      "a task rule that there is not",
      { task: "always" },
      /"optional", "required" or "forbidden"; got "always"/,
    ],
    ["a poll interval of 0", { pollMs: 0 }, /pollMs/],
  ];
  test.each(mistakes)("%s", (_what, options, words) => {
    expect(() => defineWorkflow({ name: "work", adapter, ...options } as WorkflowOptions)).toThrow(
      expect.objectContaining({ code: "configuration", message: expect.stringMatching(words) }),
    );
  });
});

describe("a workflow named like a companion tool", () => {
  const named = { workflows: [defineWorkflow({ name: "task_status", adapter })] };
  const server = () => new McpServer({ name: "server", version: "1" });

  test("is refused where companions are offered", async () => {
    const engine = await engineWith(named);
    const words = /"task_status" is a companion tool/;
    expect(() => attach(server(), engine)).toThrow(words);
    await expect(serveHttp(engine, { name: "server", version: "1" })).rejects.toThrow(words);
  });

  test("is served without them", async () => {
    const engine = await engineWith(named);
    attach(server(), engine, { companions: false });
  });
});

test("serveHttp refuses a path without a slash", async () => {
  await expect(
    serveHttp(await engineWith(), { name: "server", version: "1", path: "mcp" }),
  ).rejects.toMatchObject({ code: "configuration", message: expect.stringContaining("slash") });
});

describe("an adapter's options", () => {
  const check = (options: unknown) =>
    checkOptions("engine", options as { region?: string }, { region: true, endpoint: true } as never);

  test("that there are, and none", () => {
    check({ region: "here" });
    check({});
  });

  test.each([
    [
      "misspelt",
      { region: "here", endPoint: "x" },
      /engine has no option "endPoint"; its options are region, endpoint/,
    ],
    ["named like what every object has", { toString: 1 }, /has no option "toString"/],
    ["forgotten", undefined, /engine needs options: region, endpoint/],
    ["a text", "here", /engine needs options/],
  ])("%s", (_what, options, words) => {
    expect(() => check(options)).toThrow(
      expect.objectContaining({ code: "configuration", message: expect.stringMatching(words) }),
    );
  });
});
