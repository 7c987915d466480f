import { existsSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { createTaskEngine, type TaskEngine, WorkflowError, type WorkflowErrorCode } from "@taskferry/core";
import { sqliteStore } from "@taskferry/core/sqlite";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { toJsonRpcError } from "../../packages/core/src/wire/codec.js";
import {
  codeBlocks,
  documents,
  localLinks,
  namedRows,
  packagePages,
  quantity,
  ROOT,
  read,
  region,
} from "./markdown.js";

const CORE = "packages/core/src";

describe.each([...documents(), ...packagePages()])("%s", (page) => {
  const markdown = read(page);

  it("shows code as it is in the files that it names", () => {
    for (const { code, source } of codeBlocks(markdown)) {
      if (source !== undefined) expect(code, source).toBe(region(source));
    }
  });

  it("links to files that are there", () => {
    const gone = localLinks(markdown).filter((link) => !existsSync(join(ROOT, dirname(page), link)));
    expect(gone).toEqual([]);
  });
});

it.each(documents())("%s shows TypeScript from files that are compiled, and no other", (page) => {
  const loose = codeBlocks(read(page)).filter(
    ({ language, source }) => /^(ts|typescript)$/.test(language) && source === undefined,
  );
  expect(loose, "put <!-- code: file#region --> on the line before").toEqual([]);
});

describe("README.md", () => {
  it("opens with the two commands", () => {
    const commands = codeBlocks(read("README.md"))[0]?.code;
    expect(commands).toMatch(/^npx -y pnpm@12 demo\b.*\nnpx -y pnpm@12 test\b.*\n$/);
    const { scripts } = JSON.parse(read("package.json"));
    expect(Object.keys(scripts)).toEqual(expect.arrayContaining(["demo", "test"]));
  });
});

/** The number after `key ??` or, in an object of defaults, after `key:`; all places that have one must agree. */
function writtenDefault(code: string, key: string): number {
  const found = code.matchAll(new RegExp(`\\b${key}(?: \\?\\?|:) (?<product>\\d[\\d_ *]*)`, "g"));
  const values = [...found].map(({ groups }) =>
    (groups?.["product"] ?? "")
      .replaceAll("_", "")
      .split("*")
      .reduce((all, factor) => all * Number(factor), 1),
  );
  expect(new Set(values).size, `defaults of ${key}: ${values}`).toBe(1);
  return values[0] ?? Number.NaN;
}

describe("limits and durations", () => {
  let engine: TaskEngine;
  beforeAll(async () => {
    engine = await createTaskEngine({ workflows: [], store: await sqliteStore({ path: ":memory:" }) });
  });
  afterAll(() => engine.close());

  /** What the engine really runs with, and what the servers write into their code. */
  function inCode(): Map<string, number> {
    const { limits, timing, retention } = engine;
    const engineDefaults = Object.entries({ ...limits, ...timing }) as [string, number][];
    const serving = {
      inlineWaitMs: "inlineWaitMs",
      maxBodyBytes: "maxBodyBytes",
      maxMessageBytes: "maxMessageBytes",
      "sessions.max": "max",
      "sessions.idleMs": "idleMs",
      pollMs: "pollMs",
    };
    const files = readdirSync(join(ROOT, CORE, "server")).map((file) => `${CORE}/server/${file}`);
    const code = [`${CORE}/contract/workflow.ts`, ...files].map(read).join("\n");
    return new Map([
      ...engineDefaults,
      ["retention.defaultMs", retention.defaultMs],
      ["retention.maxMs", retention.maxMs],
      ...Object.entries(serving).map(([name, key]) => [name, writtenDefault(code, key)] as const),
    ]);
  }

  it.each(["README.md", "docs/limits.md"])("%s tells the defaults of the code", (document) => {
    const code = inCode();
    const told = [...namedRows(read(document))].filter(([name]) => code.has(name));
    expect(told.length).toBeGreaterThan(5);
    expect(told.map(([name, cell]) => [name, quantity(cell)])).toEqual(
      told.map(([name]) => [name, code.get(name)]),
    );
  });

  it("docs/limits.md leaves none out and invents none", () => {
    expect([...namedRows(read("docs/limits.md")).keys()].sort()).toEqual([...inCode().keys()].sort());
  });
});

describe("docs/errors.md", () => {
  const markdown = read("docs/errors.md");
  const codes = [
    ...(/type WorkflowErrorCode =(?<union>[^;]*);/
      .exec(read("packages/core/src/contract/errors.ts"))
      ?.groups?.["union"]?.matchAll(/"(\w+)"/g) ?? []),
  ].map(([, code]) => code as WorkflowErrorCode);
  const sections = new Map(
    markdown
      .split(/^## /m)
      .slice(1)
      .map((section): [string, string] => {
        const [heading = "", ...body] = section.split("\n");
        return [heading.replaceAll("`", ""), body.join("\n").trim()];
      }),
  );

  it("has a heading for each code, and no other", () => {
    expect(codes.length).toBeGreaterThan(15);
    expect([...sections.keys()].sort()).toEqual([...codes].sort());
  });

  it.each(codes)("%s: the JSON-RPC code is the one that clients get", (code) => {
    const { code: sent } = toJsonRpcError(new WorkflowError(code, "x"), "tasks/get");
    expect(sections.get(code)).toMatch(new RegExp(`^JSON-RPC ${sent}\\.`));
  });
});
