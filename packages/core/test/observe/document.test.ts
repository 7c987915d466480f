/** docs/observability.md names what the code has, all of it and nothing else. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { METRICS, SPANS } from "../../src/observe/observe.js";

const ROOT = fileURLToPath(new URL("../../../../", import.meta.url));
const SRC = join(ROOT, "packages/core/src");
const read = (path: string) => readFileSync(path, "utf8");
const sources = readdirSync(SRC, { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".ts"))
  .map((file) => ({ file, code: read(join(SRC, file)) }));
const code = sources.map((source) => source.code).join("\n");
const markdown = read(join(ROOT, "docs/observability.md"));

/** The rows of the table in a section whose header has this first cell, cells without code marks. */
function rows(heading: string, firstCell: string): string[][] {
  const section = markdown.split(/^## /m).find((each) => each.startsWith(`${heading}\n`)) ?? "";
  const lines = section.split("\n");
  const header = lines.findIndex((line) => line.startsWith(`| ${firstCell} `));
  expect(header, `${heading}: no table of ${firstCell}`).toBeGreaterThan(0);
  const rest = lines.slice(header + 2);
  const end = rest.findIndex((line) => !line.startsWith("|"));
  return rest.slice(0, end).map((line) =>
    line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim().replaceAll("`", "")),
  );
}

const listed = (cell: string | undefined) => (cell === undefined || cell === "" ? [] : cell.split(", "));

/** The members of a union of texts. */
function union(name: string): string[] {
  const found = new RegExp(`type ${name} =(?<members>[^;]*);`).exec(code)?.groups?.["members"];
  return [...(found ?? "").matchAll(/"([\w.]+)"/g)].map(([, member]) => member ?? "");
}

describe("docs/observability.md", () => {
  it("tells every metric as it is registered", () => {
    const told = rows("Metrics", "Metric").map(([name, kind, unit, attributes]) => ({
      name,
      kind,
      unit,
      attributes: listed(attributes),
    }));
    const registered = Object.values(METRICS).map(({ name, kind, unit, attributes }) => ({
      name,
      kind,
      unit,
      attributes: [...attributes],
    }));
    const byName = (a: { name?: string | undefined }, b: { name?: string | undefined }) =>
      (a.name ?? "").localeCompare(b.name ?? "");
    expect(told.sort(byName)).toEqual(registered.sort(byName));
  });

  it("tells every span with its attributes", () => {
    const told = rows("Traces", "Span").map(([name, attributes]) => [name, listed(attributes)]);
    expect(Object.fromEntries(told)).toEqual(SPANS);
  });

  it("tells every line of the audit, each of which is written somewhere", () => {
    const told = rows("The audit in the log", "`audit`").map(([name]) => name);
    const known = union("AuditEvent");
    expect(known.length).toBeGreaterThan(5);
    expect(told.sort()).toEqual([...known].sort());
    for (const event of known) expect(code, event).toMatch(new RegExp(`audit\\([^)]*"${event}"`));
  });

  it("tells every type of event, each of which is written somewhere", () => {
    const told = rows("The event log in the database", "Type").map(([name]) => name);
    const known = union("TaskEventType");
    expect(known.length).toBeGreaterThan(15);
    expect(told.sort()).toEqual([...known].sort());
    const written = [
      ...code.matchAll(/\btype: (?:\w+ \? )?"(?<first>\w+\.\w+)"(?: : "(?<second>\w+\.\w+)")?/g),
    ];
    const types = new Set(written.flatMap(({ groups }) => [groups?.["first"], groups?.["second"]]));
    types.delete(undefined);
    expect([...types].sort()).toEqual([...known].sort());
  });

  it("tells the detail of every event: no field that it leaves out", () => {
    const told = new Map(
      rows("The event log in the database", "Type").map(([type, detail]) => [
        type,
        listed(detail).map((field) => field.replace("?", "")),
      ]),
    );
    const shown = code.matchAll(/\btype: "(?<type>\w+\.\w+)"(?: as const)?,\s*detail: \{(?<fields>[^}]*)\}/g);
    let checked = 0;
    for (const { groups } of shown) {
      const fields = (groups?.["fields"] ?? "").split(",").map((field) => field.split(":")[0]?.trim() ?? "");
      const undocumented = fields.filter(
        (field) => field !== "" && !told.get(groups?.["type"])?.includes(field),
      );
      expect(undocumented, groups?.["type"]).toEqual([]);
      checked += 1;
    }
    expect(checked).toBeGreaterThan(8);
  });

  it("tells every warning", () => {
    const told = rows("Warnings", "Message").map(([message]) => message);
    const calls = code.matchAll(
      /\blog\.(?:warn|error)\(\s*(?:\{[\s\S]*?\}|\w+),\s*"(?<message>[^"]+)",?\s*\)/g,
    );
    const written = new Set([...calls].map(({ groups }) => groups?.["message"]));
    expect(written.size).toBeGreaterThan(8);
    expect(told.sort()).toEqual([...written].sort());
  });
});
