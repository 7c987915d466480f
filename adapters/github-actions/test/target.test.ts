import { describe, expect, it } from "vitest";
import { githubActions } from "../src/index.js";
import { CI, CORRELATED, hello, refusal, Task } from "./world.js";

async function open() {
  const world = await hello();
  world.state.repository("octo/other", { files: { [CI]: CORRELATED } });
  world.state.repository("evil/hello", { files: { [CI]: CORRELATED } });
  const { owner: _owner, repo: _repo, ref: _ref, ...rest } = world.options;
  const adapter = githubActions({ ...rest, repositories: ["octo/*"], refs: ["main", "release/*", "topic"] });
  return {
    ...world,
    start: (input: object) => new Task().start(adapter, { ...input }),
    openAdapter: adapter,
  };
}

describe("repository and ref out of an allow-list", () => {
  it("are taken from the arguments, and are no inputs", async () => {
    const { state, start } = await open();
    const task = await start({ repository: "Octo/Other", git_ref: "refs/heads/main", suite: "all" });
    expect(task.ref).toMatchObject({ owner: "octo", repo: "other" });
    expect(state.runs[0]?.inputs).toEqual({ suite: "all", taskferry_id: task.key });
  });

  it.each([
    [{}, "MissingRepository"],
    [{ repository: "evil/hello" }, "RepositoryNotAllowed"],
    [{ repository: "octo/../evil/hello" }, "InvalidRepository"],
    [{ repository: "octo/.." }, "InvalidRepository"],
    [{ repository: "octo/a?b" }, "InvalidRepository"],
    [{ repository: "xocto/hello" }, "RepositoryNotAllowed"],
    [{ repository: 7 }, "MissingRepository"],
    [{ repository: "octo/hello", git_ref: "secret" }, "RefNotAllowed"],
    [{ repository: "octo/hello", git_ref: "release/1/2" }, "RefNotAllowed"],
    [{ repository: "octo/hello", git_ref: "" }, "InvalidRef"],
    [{ repository: "octo/hello", git_ref: ["main"] }, "InvalidRef"],
  ])("%j is %s, and nothing is sent", async (input, code) => {
    const { server, start, openAdapter } = await open();
    expect(await refusal(openAdapter, start(input))).toMatchObject({ kind: "rejected", code });
    expect(server.received).toHaveLength(0);
  });

  it("cannot be set where they are fixed: there they are inputs like any other", async () => {
    const { server, adapter } = await hello();
    const verdict = await refusal(adapter(), new Task().start(adapter(), { repository: "evil/hello" }));
    expect(verdict).toMatchObject({ code: "UnexpectedInputs" });
    expect(server.dispatches).toHaveLength(0);
  });

  it("a tag is a ref", async () => {
    const { state, options, repository } = await hello();
    repository.tags.add("release/1");
    const instance = githubActions({ ...options, refs: ["release/*"] });
    await new Task().start(instance, { git_ref: "refs/tags/release/1" });
    expect(state.runs[0]?.branch).toBe("release/1");
  });

  it("options without a repository are refused at once", () => {
    expect(() => githubActions({ workflow: "ci.yml" })).toThrow(TypeError);
  });
});
