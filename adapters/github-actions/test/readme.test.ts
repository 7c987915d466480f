import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { describeWorkflow, meaningOf } from "../src/index.js";
import { hello, Task } from "./world.js";

const README = readFileSync(new URL("../README.md", import.meta.url), "utf8");
const [, SNIPPET = ""] = /<!-- tested: workflow -->\n```yaml\n(.*?)```/s.exec(README) ?? [];

describe("the workflow in the README", () => {
  it("is a workflow whose runs can be told by their name", async () => {
    expect(Object.keys(parse(SNIPPET))).toEqual(["name", "run-name", "on", "jobs"]);
    const { server, state, options, adapter } = await hello(SNIPPET);
    expect(await describeWorkflow(options)).toMatchObject({
      correlated: true,
      inputSchema: { properties: { suite: { type: "string", enum: ["unit", "all"], default: "unit" } } },
    });
    server.mode = "silent";
    const instance = adapter();
    const task = await new Task().start(instance, { suite: "all" });
    await new Task(task.claims).start(instance, { suite: "all" });
    await task.read(instance);
    expect(task.ref).toMatchObject({ runId: String(state.runs[0]!.id) });
    expect(state.runs[0]!.title).toBe(`CI ${task.key}`);
  });
});

it("the README's status table is that of the code", () => {
  const rows = README.slice(README.search(/\| GitHub +\| Task/))
    .split("\n\n")[0]!
    .split("\n")
    .slice(2)
    .filter((row) => row.includes("`"));
  expect(rows).toHaveLength(8);
  for (const row of rows) {
    const [, native = "", task = ""] = row.split("|");
    const words = [...native.matchAll(/`(\w+)`/g)].map(([, word = ""]) => word);
    const [first, ...conclusions] = words;
    const pairs =
      first === "completed" ? conclusions.map((word) => ["completed", word]) : words.map((word) => [word]);
    for (const [status = "", conclusion = null] of pairs) {
      const meaning = meaningOf(status, conclusion);
      expect(task).toContain(meaning.status);
      expect(task.includes("isError")).toBe(meaning.outcome === "failure");
    }
  }
});
