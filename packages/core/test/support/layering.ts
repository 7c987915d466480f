/**
 * Reads the import statements of a source tree and holds them against rules. Works on text, so that a bad sample can be
 * tested without being a program.
 */

/** Source files by their path below the root, e.g. `"wire/draft.ts"`. */
export type Sources = ReadonlyMap<string, string>;

export interface Import {
  readonly from: string;
  /** As written: `"../json.js"`, `"zod"`. */
  readonly specifier: string;
  /** The imported file's path below the root; `undefined` for packages and Node's own modules. */
  readonly file: string | undefined;
  /** `import type …`: erased, so it neither loads anything nor makes a cycle. An inline `{ type X }` is kept and is not. */
  readonly isType: boolean;
}

const STATIC =
  /^[ \t]*(?:import|export)\b(?<type>[ \t]+type\b(?![ \t]+from[ \t]*["']))?(?:[^'"`;]*?\bfrom)?[ \t\n]*["'](?<specifier>[^"'\n]+)["']/gm;
const DYNAMIC = /\b(?:import|require)\(\s*["'](?<specifier>[^"'\n]+)["']/g;

/** Every import and re-export of a file, dynamic ones too. */
export function importsOf(path: string, source: string): Import[] {
  const code = withoutComments(source);
  const found: Import[] = [];
  for (const { groups } of code.matchAll(STATIC)) {
    found.push(imported(path, groups?.["specifier"] ?? "", groups?.["type"] !== undefined));
  }
  for (const { groups } of code.matchAll(DYNAMIC)) {
    found.push(imported(path, groups?.["specifier"] ?? "", false));
  }
  return found;
}

function imported(from: string, specifier: string, isType: boolean): Import {
  const file = specifier.startsWith(".") ? resolve(from, specifier) : undefined;
  return { from, specifier, file, isType };
}

function resolve(from: string, specifier: string): string {
  const parts = from.split("/").slice(0, -1);
  for (const part of specifier.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== ".") parts.push(part);
  }
  return parts.join("/").replace(/\.js$/, ".ts");
}

/** Comments hold examples with imports of their own. Strings that look like comments stay, as far as they are on one line. */
export function withoutComments(source: string): string {
  return source.replace(/\/\*[\s\S]*?\*\/|(?<=^[ \t]*)\/\/.*$/gm, "");
}

/** One rule about imports. */
export interface Rule {
  readonly id: string;
  readonly says: string;
  /** Whether an import breaks it. */
  readonly isBrokenBy: (found: Import) => boolean;
}

/** Every import that breaks a rule, as a line that names both. */
export function violations(sources: Sources, rules: readonly Rule[]): string[] {
  const broken: string[] = [];
  for (const [path, source] of sources) {
    for (const found of importsOf(path, source)) {
      for (const rule of rules) {
        if (rule.isBrokenBy(found)) broken.push(`${rule.id}: ${path} imports ${found.specifier}`);
      }
      if (found.file !== undefined && !sources.has(found.file)) {
        broken.push(`unresolved: ${path} imports ${found.specifier}`);
      }
    }
  }
  return broken;
}

/** A cycle among value imports, as the files on it, or `undefined`. Type imports are erased and may go round. */
export function findCycle(sources: Sources): readonly string[] | undefined {
  const graph = new Map(
    [...sources].map(([path, source]) => [
      path,
      importsOf(path, source).flatMap(({ file, isType }) => (file === undefined || isType ? [] : [file])),
    ]),
  );
  const done = new Set<string>();
  const visit = (path: string, trail: readonly string[]): readonly string[] | undefined => {
    const at = trail.indexOf(path);
    if (at >= 0) return [...trail.slice(at), path];
    if (done.has(path)) return undefined;
    for (const next of graph.get(path) ?? []) {
      const cycle = visit(next, [...trail, path]);
      if (cycle !== undefined) return cycle;
    }
    done.add(path);
    return undefined;
  };
  for (const path of graph.keys()) {
    const cycle = visit(path, []);
    if (cycle !== undefined) return cycle;
  }
  return undefined;
}
