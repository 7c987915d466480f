import { isEngineError, isWorkflowError, type Json } from "@taskferry/core";
import { describe, expect, it } from "vitest";
import { fillCommand, parseCommand } from "../src/command-line.js";

const fill = (command: string[], input: Json, { allowDash = [] as string[], allowUnused = false } = {}) =>
  fillCommand(parseCommand(command, allowDash), input, allowUnused);

function refusal(call: () => unknown): string {
  try {
    call();
  } catch (error) {
    if (isEngineError(error)) {
      expect(error.verdict.kind).toBe("rejected");
      return error.message;
    }
    if (isWorkflowError(error)) {
      expect(error.code).toBe("configuration");
      return error.message;
    }
  }
  return expect.fail("must throw");
}

describe("placeholders", () => {
  it.each([
    [
      "a string is one argument, whatever it holds",
      ["p", "{{a}}"],
      { a: "x y; $(rm) 'q' \"d\" \n*" },
      ["p", "x y; $(rm) 'q' \"d\" \n*"],
    ],
    ["a value may be a part", ["p", "--out={{a}}.txt"], { a: "-f" }, ["p", "--out=-f.txt"]],
    ["several in one argument", ["p", "{{a}}:{{b}}"], { a: "1", b: 2 }, ["p", "1:2"]],
    [
      "numbers and booleans are written",
      ["p", "{{a}}", "{{b}}"],
      { a: -1.5, b: false },
      ["p", "-1.5", "false"],
    ],
    ["a value is not read again", ["p", "{{a}}", "{{b}}"], { a: "{{b}}", b: "x" }, ["p", "{{b}}", "x"]],
    ["a list spreads", ["p", "{{a...}}", "end"], { a: ["1", 2, true] }, ["p", "1", "2", "true", "end"]],
    ["an empty list is no argument", ["p", "{{a...}}", "end"], { a: [] }, ["p", "end"]],
    ["an absent list is empty", ["p", "{{a...}}"], {}, ["p"]],
    ["an absent optional takes its argument along", ["p", "--n={{a?}}", "{{b?}}"], { b: "x" }, ["p", "x"]],
    ["null is absent", ["p", "{{a?}}"], { a: null }, ["p"]],
    ["an empty string is an argument", ["p", "{{a}}"], { a: "" }, ["p", ""]],
    ["an escape stands for itself", ["p", "\\{{.Names}}"], {}, ["p", "{{.Names}}"]],
    ["no placeholders, no input", ["p", "x"], null, ["p", "x"]],
    ["inherited properties are not input", ["p", "{{constructor?}}"], {}, ["p"]],
  ])("%s", (_, command, input, argv) => {
    expect(fill(command, input as Json)).toEqual(argv);
  });

  it.each([
    ["a missing value", ["p", "{{a}}"], {}, '"a" is missing'],
    ["a value without a place", ["p", "{{a}}"], { a: "1", b: "secret" }, 'no place for: "b"'],
    ["a list in one place", ["p", "{{a}}"], { a: ["1"] }, '"a" must be a string'],
    ["an object", ["p", "{{a}}"], { a: {} }, '"a" must be a string'],
    ["no list where one spreads", ["p", "{{a...}}"], { a: "1" }, '"a" must be a list'],
    ["a list in a list", ["p", "{{a...}}"], { a: [["1"]] }, '"a" must be a string'],
    ["a NUL", ["p", "{{a}}"], { a: "x\0y" }, "NUL"],
    ["an input that is no object", ["p", "{{a}}"], ["secret"], "must be a JSON object"],
    ["an argument that no system takes", ["p", "{{a}}"], { a: "x".repeat(131_072) }, "too long"],
  ])("refuses %s, and does not quote values", (_, command, input, message) => {
    const said = refusal(() => fill(command, input as Json));
    expect(said).toContain(message);
    expect(said).not.toContain("secret");
  });

  it("lets the whole input go elsewhere", () => {
    expect(fill(["p", "{{a}}"], { a: "1", b: {} }, { allowUnused: true })).toEqual(["p", "1"]);
    expect(fill(["p"], [1, 2], { allowUnused: true })).toEqual(["p"]);
  });
});

describe("values that begin with a dash", () => {
  it.each([
    ["alone", ["p", "{{a}}"], { a: "--exec=rm" }],
    ["before more text", ["p", "{{a}}.txt"], { a: "-x" }],
    ["behind an empty value", ["p", "{{b}}{{a}}"], { b: "", a: "-x" }],
    ["in a list", ["p", "{{a...}}"], { a: ["ok", "-x"] }],
  ])("are refused %s", (_, command, input) => {
    expect(refusal(() => fill(command, input as Json))).toContain("option");
  });

  it("are fine behind a literal --", () => {
    expect(fill(["p", "--", "{{a}}", "{{b...}}"], { a: "-x", b: ["-y"] })).toEqual(["p", "--", "-x", "-y"]);
  });

  it("are fine where the operator allows them", () => {
    expect(fill(["p", "{{a...}}"], { a: ["-x"] }, { allowDash: ["a"] })).toEqual(["p", "-x"]);
  });

  it("cannot bring the -- themselves", () => {
    expect(refusal(() => fill(["p", "{{a}}", "{{b}}"], { a: "--", b: "-x" }))).toContain('"a"');
  });
});

describe("a template", () => {
  it.each([
    ["nothing", [], "needs at least"],
    ["a program that the caller chooses", ["{{a}}"], "whoever calls"],
    ["a misspelt placeholder", ["p", "{{ a }}"], "without a placeholder"],
    ["a list inside an argument", ["p", "x{{a...}}"], "whole argument"],
    [
      "a placeholder inside a shell script",
      ["/bin/bash", "-ec", "ls {{a}}"],
      "would run what the caller sends",
    ],
    ["a NUL", ["p", "\0"], "NUL"],
  ])("with %s is refused", (_, command, message) => {
    expect(refusal(() => parseCommand(command, []))).toContain(message);
  });

  it("may hand values to a shell script as parameters", () => {
    expect(fill(["sh", "-c", 'echo "$1"', "sh", "{{a}}"], { a: "$(id)" }).at(-1)).toBe("$(id)");
  });

  it("with an unknown name in allowDash is refused", () => {
    expect(refusal(() => parseCommand(["p", "{{a}}"], ["b"]))).toContain('"b"');
  });
});
