import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import {
  findCycle,
  importsOf,
  type Rule,
  type Sources,
  violations,
  withoutComments,
} from "./support/layering.js";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

/** What neither is source nor belongs to the repository. */
const NOT_OURS = new Set([
  "node_modules",
  "dist",
  ".git",
  ".taskferry",
  "coverage",
  "results",
  "__pycache__",
  ".tarballs",
]);

function folders(below: string): string[] {
  return readdirSync(join(ROOT, below), { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !NOT_OURS.has(entry.name))
    .flatMap(({ name }) => {
      const inner = folders(join(below, name));
      // Git knows no empty folders.
      const holdsFiles = readdirSync(join(ROOT, below, name), { withFileTypes: true }).some((e) =>
        e.isFile(),
      );
      return holdsFiles || inner.length > 0 ? [`${join(below, name)}/`, ...inner] : [];
    });
}

function sourcesOf(folder: string): Sources {
  const root = join(ROOT, folder);
  const files = readdirSync(root, { recursive: true, withFileTypes: true }).filter(
    (entry) => entry.isFile() && entry.name.endsWith(".ts"),
  );
  return new Map(
    files.map((entry) => {
      const path = join(entry.parentPath, entry.name);
      return [relative(root, path), readFileSync(path, "utf8")];
    }),
  );
}

const CORE = sourcesOf("packages/core/src");

const within = (path: string | undefined, ...folders: string[]) =>
  path !== undefined && folders.some((folder) => path.startsWith(`${folder}/`));
/** The words that every layer is written in. */
const VOCABULARY = ["contract/errors.ts", "contract/json.ts", "contract/task.ts"];

const RULES: readonly Rule[] = [
  {
    id: "sdk-in-server-only",
    says: "server/ is the only importer of the MCP SDK",
    isBrokenBy: ({ from, specifier }) =>
      specifier.startsWith("@modelcontextprotocol/") && !within(from, "server"),
  },
  {
    id: "contract-stands-alone",
    says: "contract/ imports contract/ only: adapter authors and every room below the wire read it",
    isBrokenBy: ({ from, file }) =>
      within(from, "contract") && file !== undefined && !within(file, "contract"),
  },
  {
    id: "engine-is-wire-blind",
    says: "engine/, observe/ and store/ import neither wire/ nor server/; index.ts, which is the package, exports all",
    isBrokenBy: ({ from, file }) =>
      within(from, "engine", "observe", "store") && within(file, "wire", "server"),
  },
  {
    id: "observers-steer-nothing",
    says: "observe/ imports the contract and, of the store, types: what is measured does not depend on who measures",
    isBrokenBy: ({ from, file }) => within(from, "observe") && within(file, "engine"),
  },
  {
    id: "wire-never-looks-up",
    says: "wire/ imports neither server/ nor store/",
    isBrokenBy: ({ from, file }) => within(from, "wire") && within(file, "server", "store"),
  },
  {
    id: "wire-runs-on-words",
    says: "what wire/ loads is wire/ and the common vocabulary; of the engine it knows types",
    isBrokenBy: ({ from, file, isType }) =>
      within(from, "wire") &&
      file !== undefined &&
      !isType &&
      !within(file, "wire") &&
      !VOCABULARY.includes(file),
  },
  {
    id: "store-knows-no-engine",
    says: "store/ imports store/, the vocabulary, and types of the contract",
    isBrokenBy: ({ from, file, isType }) =>
      within(from, "store") &&
      file !== undefined &&
      !within(file, "store") &&
      !VOCABULARY.includes(file) &&
      !(isType && file === "contract/adapter.ts"),
  },
  {
    id: "store-behind-its-interface",
    says: "outside of store/ only the types of task-store.ts are known, so no driver is loaded unasked",
    isBrokenBy: ({ from, file, isType }) =>
      !within(from, "store") && within(file, "store") && !(isType && file === "store/task-store.ts"),
  },
  {
    id: "drivers-in-their-files",
    says: "each database driver is loaded by its own file, Kysely by store/",
    isBrokenBy: ({ from, specifier }) =>
      (specifier === "better-sqlite3" && from !== "store/sqlite.ts") ||
      (specifier === "pg" && from !== "store/postgres.ts") ||
      (specifier === "kysely" && !within(from, "store")),
  },
  {
    id: "no-adapter-implementation",
    says: "core imports no other package of this repository",
    isBrokenBy: ({ specifier }) => specifier === "taskferry" || specifier.startsWith("@taskferry/"),
  },
];

/** Adapters are called by engine/guard.ts alone: nobody else may hold one, but to define a workflow and to hand it to the guard. */
function unguarded(sources: Sources): string[] {
  const calls = /\badapter\??\.(?:start|read|stop|find|answer|events|logs|explain|close)\??\.?\(/;
  const found: string[] = [];
  for (const [path, source] of sources) {
    if (path === "engine/guard.ts" || path === "contract/adapter.ts") continue;
    const code = withoutComments(source);
    const holdsOne = /\bWorkflowAdapter\b/.test(code);
    if (holdsOne && path !== "contract/workflow.ts" && path !== "index.ts")
      found.push(`${path} names WorkflowAdapter`);
    if (holdsOne && calls.test(code)) found.push(`${path} calls an adapter`);
    if (new RegExp(`\\bworkflow\\.${calls.source.slice(2)}`).test(code))
      found.push(`${path} calls workflow.adapter`);
    for (const { index } of code.matchAll(/\bworkflow\.adapter\b(?![.?])/g)) {
      if (!/new GuardedAdapter\(\s*$/.test(code.slice(0, index)))
        found.push(`${path} hands workflow.adapter on`);
    }
  }
  return found;
}

describe("imports of packages/core/src", () => {
  it.each(RULES)("$id: $says", (rule) => {
    expect(violations(CORE, [rule])).toEqual([]);
  });

  it("server/ reaches all layers below it, so the rules speak about imports that exist", () => {
    const reached = [...CORE]
      .filter(([path]) => within(path, "server"))
      .flatMap(([path, code]) => importsOf(path, code));
    expect(reached.some(({ file }) => within(file, "wire"))).toBe(true);
    expect(reached.some(({ file }) => file === "engine/engine.ts")).toBe(true);
    expect(reached.some(({ specifier }) => specifier.startsWith("@modelcontextprotocol/"))).toBe(true);
  });

  it("no cycles among files, but for imports of types, which are erased", () => {
    expect(findCycle(CORE)).toBeUndefined();
  });

  it("only engine/guard.ts calls adapters", () => {
    expect(unguarded(CORE)).toEqual([]);
  });
});

describe("imports of adapters", () => {
  const adapters = readdirSync(join(ROOT, "adapters"));

  it.each(adapters)("%s knows the contract and its vendor, and no word of MCP", (adapter) => {
    const foreign = [...sourcesOf(`adapters/${adapter}/src`)]
      .flatMap(([path, source]) => importsOf(path, source))
      .filter(
        ({ specifier }) =>
          specifier.startsWith("@modelcontextprotocol/") ||
          (/^(@taskferry\/|taskferry\b)/.test(specifier) && specifier !== "@taskferry/core") ||
          specifier.includes("/core/src/"),
      );
    expect(foreign).toEqual([]);
  });
});

describe("ARCHITECTURE.md", () => {
  const named = [
    ...new Set(
      [...readFileSync(join(ROOT, "ARCHITECTURE.md"), "utf8").matchAll(/`((?:[\w.*-]+\/)+)`/g)].map(
        ([, path]) => path ?? "",
      ),
    ),
  ];
  /** `*` stands for one folder. */
  const matches = (pattern: string, folder: string) =>
    new RegExp(`^${pattern.replaceAll(".", "\\.").replaceAll("*", "[^/]+")}$`).test(folder);
  const all = folders("");

  it("names every folder", () => {
    expect(all.filter((folder) => !named.some((pattern) => matches(pattern, folder)))).toEqual([]);
  });

  it("names no folder that is not there", () => {
    // Paths in running text may be relative to packages/core/src/.
    const known = (pattern: string) =>
      all.some((folder) => matches(pattern, folder) || matches(`packages/core/src/${pattern}`, folder));
    expect(named.filter((pattern) => !known(pattern))).toEqual([]);
  });
});

describe("ARCHITECTURE.md and files", () => {
  it("names no file that is not there", () => {
    const text = readFileSync(join(ROOT, "ARCHITECTURE.md"), "utf8");
    const named = [...text.matchAll(/`((?:[\w.-]+\/)*[\w.-]+\.(?:ts|md|json))`/g)].map(
      ([, path]) => path ?? "",
    );
    const places = ["", "packages/core/src", "adapters/process/src"];
    const gone = named.filter((path) => !places.some((place) => existsSync(join(ROOT, place, path))));
    expect(named.length).toBeGreaterThan(20);
    expect(gone).toEqual([]);
  });
});

describe("the checker itself", () => {
  const bad: Sources = new Map([
    ["engine/timing.ts", ""],
    [
      "engine/engine.ts",
      `import { encode } from "../wire/draft.js";\nimport { sqlite } from "../store/sqlite.js";\n`,
    ],
    ["contract/task.ts", `import { timing } from "../engine/timing.js";\n`],
    ["observe/gauges.ts", `import { timing } from "../engine/timing.js";\n`],
    [
      "wire/draft.ts",
      `import { attach } from "../server/attach.js";\nimport { engine } from "../engine/engine.js";\n`,
    ],
    [
      "wire/codec.ts",
      `import {\n  type Server,\n} from "@modelcontextprotocol/server";\nimport type { T } from "../engine/engine.js";\n`,
    ],
    ["store/sqlite.ts", `import { run } from "../engine/engine.js";\nexport * from "../server/attach.js";\n`],
    [
      "server/attach.ts",
      `const driver = await import("pg");\nimport "@taskferry/process";\nimport x from "./gone.js";\n`,
    ],
  ]);

  it("sees each rule broken", () => {
    expect(violations(bad, RULES)).toEqual([
      "engine-is-wire-blind: engine/engine.ts imports ../wire/draft.js",
      "store-behind-its-interface: engine/engine.ts imports ../store/sqlite.js",
      "contract-stands-alone: contract/task.ts imports ../engine/timing.js",
      "observers-steer-nothing: observe/gauges.ts imports ../engine/timing.js",
      "wire-never-looks-up: wire/draft.ts imports ../server/attach.js",
      "wire-runs-on-words: wire/draft.ts imports ../server/attach.js",
      "wire-runs-on-words: wire/draft.ts imports ../engine/engine.js",
      "sdk-in-server-only: wire/codec.ts imports @modelcontextprotocol/server",
      "store-knows-no-engine: store/sqlite.ts imports ../engine/engine.js",
      "engine-is-wire-blind: store/sqlite.ts imports ../server/attach.js",
      "store-knows-no-engine: store/sqlite.ts imports ../server/attach.js",
      "no-adapter-implementation: server/attach.ts imports @taskferry/process",
      "unresolved: server/attach.ts imports ./gone.js",
      "drivers-in-their-files: server/attach.ts imports pg",
    ]);
    const broken = new Set(violations(bad, RULES).map((line) => line.split(":")[0]));
    expect(RULES.filter(({ id }) => !broken.has(id))).toEqual([]);
  });

  it("finds a cycle, and not one that goes through a type", () => {
    const round = (kind: string): Sources =>
      new Map([
        ["a.ts", `import { b } from "./b.js";`],
        ["b.ts", `export { c } from "./c.js";`],
        ["c.ts", `import ${kind}{ a } from "./a.js";`],
      ]);
    expect(findCycle(round(""))).toEqual(["a.ts", "b.ts", "c.ts", "a.ts"]);
    expect(findCycle(round("type "))).toBeUndefined();
  });

  it("tells an import of types from an import that merely names a type, and code from comments", () => {
    const read = (source: string) =>
      importsOf("x.ts", source).map(({ specifier, isType }) => [specifier, isType]);
    expect(read(`import type { A } from "a";`)).toEqual([["a", true]]);
    expect(read(`export type { A } from "a";`)).toEqual([["a", true]]);
    // `verbatimModuleSyntax` leaves `import {} from "a"` of this one.
    expect(read(`import { type A } from "a";`)).toEqual([["a", false]]);
    expect(read(`import type from "a";`)).toEqual([["a", false]]);
    expect(read(`import * as a from "a";\nimport "b";\nexport * from "c";`)).toEqual([
      ["a", false],
      ["b", false],
      ["c", false],
    ]);
    expect(read(`/** import { A } from "a"; */\n// import b from "b";\nconst url = "http://c";`)).toEqual([]);
  });

  it("sees an adapter called past the guard", () => {
    expect(unguarded(new Map([["engine.ts", "await workflow.adapter.start(request);"]]))).toEqual([
      "engine.ts calls workflow.adapter",
    ]);
    expect(unguarded(new Map([["work.ts", 'import type { WorkflowAdapter } from "./adapter.js";']]))).toEqual(
      ["work.ts names WorkflowAdapter"],
    );
    expect(unguarded(new Map([["work.ts", "const mine = workflow.adapter;"]]))).toEqual([
      "work.ts hands workflow.adapter on",
    ]);
    expect(
      unguarded(new Map([["contract/workflow.ts", "let a: WorkflowAdapter; adapter.read?.(ref);"]])),
    ).toEqual(["contract/workflow.ts calls an adapter"]);
  });
});
