/** Reads documents for what can be held against code: marked code blocks, headings, tables, links. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../../", import.meta.url));

export interface CodeBlock {
  readonly language: string;
  readonly code: string;
  /** `file#region` of a comment like `<!-- code: docs/snippets/server.ts#server -->` on the line before. */
  readonly source: string | undefined;
}

export function read(path: string): string {
  return readFileSync(join(ROOT, path), "utf8");
}

/** The documents of the repository. */
export function documents(): string[] {
  const top = readdirSync(ROOT).filter((name) => name.endsWith(".md"));
  const below = readdirSync(join(ROOT, "docs")).filter((name) => name.endsWith(".md"));
  return [...top, ...below.map((name) => `docs/${name}`)];
}

/** The pages of its packages. */
export function packagePages(): string[] {
  return ["packages", "adapters", "examples"].flatMap((parent) =>
    readdirSync(join(ROOT, parent))
      .map((name) => `${parent}/${name}/README.md`)
      .filter((page) => existsSync(join(ROOT, page))),
  );
}

export function codeBlocks(markdown: string): CodeBlock[] {
  const fenced = /(?:<!-- code: (?<source>\S+) -->\n+)?^```(?<language>\w*)[^\n]*\n(?<code>[\s\S]*?)^```$/gm;
  return [...markdown.matchAll(fenced)].map(({ groups }) => ({
    language: groups?.["language"] ?? "",
    code: groups?.["code"] ?? "",
    source: groups?.["source"],
  }));
}

/** A file, or the lines between `// #region name` and `// #endregion name`, with their common indent taken off. */
export function region(source: string): string {
  const [path = "", name] = source.split("#");
  const text = read(path);
  if (name === undefined) return text;
  const lines = text.split("\n");
  const begin = lines.findIndex((line) => line.trim() === `// #region ${name}`);
  const end = lines.findIndex((line) => line.trim() === `// #endregion ${name}`);
  if (begin < 0 || end < begin) throw new Error(`${path} has no region ${name}`);
  const inner = lines.slice(begin + 1, end);
  const indents = inner.filter((line) => line.trim() !== "").map((line) => line.search(/\S/));
  const indent = Math.min(...indents);
  return `${inner.map((line) => line.slice(indent)).join("\n")}\n`;
}

/** Rows of a table whose first cell is one name in code marks: name to second cell. */
export function namedRows(markdown: string): Map<string, string> {
  const rows = markdown.matchAll(/^\| `(?<name>[\w.]+)` *\| *(?<value>[^|\n]+?) *\|/gm);
  return new Map([...rows].map(({ groups }) => [groups?.["name"] ?? "", groups?.["value"] ?? ""]));
}

/** Targets of links and images that point into the repository, without fragment. */
export function localLinks(markdown: string): string[] {
  const links = markdown.replace(/```[\s\S]*?```/g, "").matchAll(/\]\((?<target>[^)\s#]+)(?:#[^)\s]*)?\)/g);
  return [...links].map(({ groups }) => groups?.["target"] ?? "").filter((target) => !/^\w+:/.test(target));
}

const UNITS: Readonly<Record<string, number>> = {
  "": 1,
  ms: 1,
  s: 1_000,
  min: 60_000,
  h: 3_600_000,
  day: 86_400_000,
  days: 86_400_000,
  MiB: 1_048_576,
};

/** `"2 s"` is 2000, `"6,000"` is 6000, `"64 MiB"` is 67108864. */
export function quantity(cell: string): number {
  const { groups } = /^(?<number>[\d,.]+) ?(?<unit>[A-Za-z]*)$/.exec(cell) ?? {};
  const unit = UNITS[groups?.["unit"] ?? ""];
  if (groups === undefined || unit === undefined) throw new Error(`"${cell}" is no quantity`);
  return Number(groups["number"]?.replaceAll(",", "")) * unit;
}
