import { Ajv } from "ajv";
import { describe, expect, it } from "vitest";
import {
  checkInputs,
  describeWorkflow,
  discoverWorkflows,
  inputsSchema,
  workflowInputs,
} from "../src/index.js";
import { dispatchTrigger } from "../src/inputs.js";
import { CI, CORRELATED, gitHub, hello, PLAIN, refusal, Task } from "./world.js";

const ALL = `
on:
  workflow_dispatch:
    inputs:
      text: { description: Free text, required: true }
      fallback: { required: true, default: 3 }
      flag: { type: boolean, default: true }
      count: { type: number, default: "2" }
      level: { type: choice, options: [debug, 1, true], default: debug }
      where: { type: environment, required: true }
      odd: { type: martian }
`;

/** An expression as workflow files write it. */
function expression(text: string): string {
  return `$\{{ ${text} }}`;
}

function code(call: () => unknown): string | undefined {
  try {
    call();
  } catch (error) {
    return (error as { verdict: { code: string } }).verdict.code;
  }
  return undefined;
}

describe("reading a workflow file", () => {
  it("finds every type, default and requirement", () => {
    expect(workflowInputs(ALL)).toEqual({
      text: { type: "string", description: "Free text", required: true },
      fallback: { type: "string", required: false, default: 3 },
      flag: { type: "boolean", required: false, default: true },
      count: { type: "number", required: false, default: "2" },
      level: { type: "choice", required: false, default: "debug", options: ["debug", "1", "true"] },
      where: { type: "environment", required: true },
      odd: { type: "string", required: false },
    });
  });

  it.each([
    ["the key `on` of YAML 1.2", "on: { workflow_dispatch: {} }"],
    ["a file in YAML 1.1, where `on` is true", "%YAML 1.1\n---\non: { workflow_dispatch: {} }"],
    ["a quoted key", '"on": { workflow_dispatch: {} }'],
    ["the key `true`", "true: { workflow_dispatch: {} }"],
    ["a string", "on: workflow_dispatch"],
    ["a list", "on: [push, workflow_dispatch]"],
    ["an empty trigger", "on:\n  push:\n  workflow_dispatch:\n"],
    ["anchors and merges", "x: &x { push: {} }\non: { <<: *x, workflow_dispatch: {} }"],
  ])("sees the trigger in %s", (_, file) => {
    expect(dispatchTrigger(file)).toMatchObject({ inputs: {} });
  });

  it.each(["on: push", "on: { workflow_call: {} }", "", "[]", "jobs: {}", "on: { push: workflow_dispatch }"])(
    "sees none in %j",
    (file) => {
      expect(dispatchTrigger(file)).toBeUndefined();
      expect(workflowInputs(file)).toEqual({});
    },
  );

  it("keeps yes and no as the words they are in YAML 1.2", () => {
    const file = "on: { workflow_dispatch: { inputs: { a: { type: choice, options: [yes, no, off] } } } }";
    expect(workflowInputs(file)["a"]?.options).toEqual(["yes", "no", "off"]);
  });

  it("refuses what is not YAML, and does not blow up on an alias bomb", () => {
    expect(code(() => workflowInputs("on: [unclosed"))).toBe("InvalidWorkflowFile");
    const bomb = ["a: &a [x,x,x,x,x,x,x,x,x]"];
    for (const [from, to] of ["ab", "bc", "cd", "de", "ef", "fg"]) {
      bomb.push(`${to}: &${to} [${Array(9).fill(`*${from}`).join(",")}]`);
    }
    expect(() => workflowInputs(bomb.join("\n"))).toThrow();
  });

  it.each([
    ["a plain input", `CI ${expression("inputs.taskferry_id")}`, ["taskferry_id"]],
    ["one of the event", `${expression("github.event.inputs.taskferry_id")} x`, ["taskferry_id"]],
    ["one by index", expression("inputs['taskferry_id']"), ["taskferry_id"]],
    ["several", expression("format('{0} {1}', inputs.a, inputs.b-c)"), ["a", "b-c"]],
    ["no expression", "inputs.taskferry_id", []],
    ["another context", expression("github.actor"), []],
  ])("knows what a run-name with %s shows", (_, runName, shown) => {
    expect(dispatchTrigger(`run-name: ${runName}\non: workflow_dispatch`)?.shownInputs).toEqual(shown);
  });
});

describe("the JSON Schema of inputs", () => {
  it("admits what GitHub admits", () => {
    const schema = inputsSchema(workflowInputs(ALL));
    expect(schema).toMatchObject({
      required: ["text", "where"],
      additionalProperties: false,
      properties: {
        fallback: { type: "string", default: "3" },
        flag: { type: "boolean", default: true },
        count: { type: "number", default: 2 },
        level: { type: "string", enum: ["debug", "1", "true"], default: "debug" },
      },
    });
    const fits = new Ajv().compile(schema as object);
    expect(fits({ text: "x", where: "production", count: 1.5 })).toBe(true);
    expect(fits({ text: "x", where: "production", level: "trace" })).toBe(false);
    expect(fits({ text: "x" })).toBe(false);
  });
});

describe("checking arguments", () => {
  const inputs = workflowInputs(ALL);

  it("makes strings of them", () => {
    expect(
      checkInputs({ text: "a", where: "prod", flag: false, count: 1.5, level: "1", odd: null }, inputs),
    ).toEqual({ text: "a", where: "prod", flag: "false", count: "1.5", level: "1" });
  });

  it.each([
    ["an undeclared one", { text: "a", where: "p", other: "s3cret" }, "UnexpectedInputs"],
    ["a missing one", { where: "p" }, "MissingInput"],
    ["an empty one that is required", { text: "", where: "p" }, "MissingInput"],
    ["no boolean", { text: "a", where: "p", flag: "s3cret" }, "InvalidInput"],
    ["no number", { text: "a", where: "p", count: "s3cret" }, "InvalidInput"],
    ["no such choice", { text: "a", where: "p", level: "s3cret" }, "InvalidInput"],
    ["an object", { text: { s3cret: 1 }, where: "p" }, "InvalidInput"],
    ["a name from the prototype", { text: "a", where: "p", toString: "s3cret" }, "UnexpectedInputs"],
    ["too much", { text: "x".repeat(65_536), where: "p" }, "InputsTooLarge"],
  ])("refuses %s", (_, args, expected) => {
    expect(code(() => checkInputs(args, inputs))).toBe(expected);
    expect(() => checkInputs(args, inputs)).not.toThrow(/s3cret/);
  });

  it("counts inputs: 25 go, 26 do not, and the correlation input counts", async () => {
    const many = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => [`i${i}`, "x"]));
    expect(Object.keys(checkInputs(many(25), undefined))).toHaveLength(25);
    expect(code(() => checkInputs(many(26), undefined))).toBe("TooManyInputs");
    const declared = Object.keys(many(25)).map((name) => `      ${name}: {}`);
    const { server, adapter } = await hello(
      `run-name: \${{ inputs.taskferry_id }}\non:\n  workflow_dispatch:\n    inputs:\n      taskferry_id: {}\n${declared.join("\n")}\n`,
    );
    const verdict = await refusal(adapter(), new Task().start(adapter(), many(25)));
    expect(verdict.code).toBe("TooManyInputs");
    await new Task().start(adapter(), many(24));
    expect(server.dispatches).toHaveLength(1);
  });

  it("does not let a caller set the correlation input", async () => {
    const { adapter } = await hello();
    const verdict = await refusal(adapter(), new Task().start(adapter(), { taskferry_id: "mine" }));
    expect(verdict).toMatchObject({ kind: "rejected", code: "UnexpectedInputs" });
  });

  it("takes the inputs of the options instead of the file's", async () => {
    const { state, adapter } = await hello();
    const instance = adapter({ inputs: { suite: { type: "string", required: true } } });
    expect(await refusal(instance, new Task().start(instance))).toMatchObject({ code: "MissingInput" });
    const task = await new Task().start(instance, { suite: "all" });
    expect(state.runs[0]?.inputs).toEqual({ suite: "all", taskferry_id: task.key });
  });

  it("uses another correlation input, or none", async () => {
    const renamed = CORRELATED.replaceAll("taskferry_id", "trace");
    const { state, adapter } = await hello(renamed);
    const task = await new Task().start(adapter({ correlationInput: "trace" }));
    expect(state.runs[0]?.inputs).toEqual({ trace: task.key });
    await new Task().start(adapter({ correlationInput: false }));
    expect(state.runs[1]?.inputs).toEqual({});
  });

  it("does not send a correlation input that the run's name does not show", async () => {
    const { state, adapter } = await hello(CORRELATED.replace(/^run-name.*$/m, ""));
    await new Task().start(adapter());
    expect(state.runs[0]?.inputs).toEqual({});
  });
});

describe("describing workflows", () => {
  it("makes a tool's schema of a file, without the correlation input", async () => {
    const { server, options } = await hello();
    const described = await describeWorkflow({ ...options, refs: ["main", "topic"] });
    expect(described).toMatchObject({
      workflow: "ci.yml",
      name: "ci",
      path: CI,
      correlated: true,
      url: `${server.url}/octo/hello/blob/main/${CI}`,
    });
    expect(described.inputSchema["properties"]).toEqual({
      git_ref: { type: "string", description: "The branch or tag to run on.", enum: ["main", "topic"] },
      suite: { type: "string", enum: ["unit", "all"], default: "unit" },
      dry_run: { type: "boolean", default: false },
      retries: { type: "number" },
    });
    expect(described.inputSchema["additionalProperties"]).toBe(false);
  });

  it("finds what can be dispatched in a repository, whatever else is there", async () => {
    const server = await gitHub();
    const repository = server.state.repository("octo/many", {
      files: {
        ".github/workflows/a.yml": CORRELATED,
        ".github/workflows/b.yaml": PLAIN,
        ".github/workflows/push.yml": "on: push",
        ".github/workflows/broken.yml": "on: [",
        ".github/workflows/off.yml": PLAIN,
        "dynamic/pages/build": "",
      },
    });
    repository.workflows.find(({ path }) => path.endsWith("off.yml"))!.state = "disabled_manually";
    const found = await discoverWorkflows({ baseUrl: server.url, owner: "octo", repo: "many" });
    expect(found.map(({ workflow, correlated }) => [workflow, correlated])).toEqual([
      ["a.yml", true],
      ["b.yaml", false],
    ]);
  });

  it("refuses a workflow that has no trigger, or an input with a name of ours", async () => {
    const push = await hello("on: push");
    await expect(describeWorkflow(push.options)).rejects.toThrow(/workflow_dispatch/);
    const taken = await hello(PLAIN.replace("suite", "git_ref"));
    await expect(describeWorkflow({ ...taken.options, refs: ["*"] })).rejects.toThrow(/git_ref/);
  });

  it("forbids no argument when the file cannot be read", async () => {
    const { server, options } = await hello();
    server.fault({ on: /contents/, does: { status: 403, body: { message: "no" } } });
    expect((await describeWorkflow(options)).inputSchema).toMatchObject({ additionalProperties: true });
  });
});
