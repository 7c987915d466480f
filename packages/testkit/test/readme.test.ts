import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { scriptedDrive } from "../mutants/subject.js";
import { REQUIREMENTS } from "../src/index.js";

const README = new URL("../README.md", import.meta.url);
const SECTION = /(<!-- requirements -->\n).*(<!-- \/requirements -->)/s;

/** Padded as the formatter pads tables, so that it leaves them alone. */
function table(): string {
  const rows = REQUIREMENTS.map(({ id, says, source, drive, adapter }) => {
    const needs = [...adapter.map((part) => `\`${part}\``), ...drive.map((name) => `drive \`${name}\``)];
    return [`\`${id}\``, says, `\`${source}\``, needs.join(", ") || "nothing"];
  });
  const head = ["Id", "Requirement", "From", "Needs"];
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[], pad = " ") =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0, pad)).join(" | ")} |`;
  return [line(head), line(["", "", "", ""], "-"), ...rows.map((row) => line(row)), ""].join("\n");
}

it("lists the requirements as they are (vitest -u writes the table)", async () => {
  const readme = await readFile(README, "utf8");
  expect(readme).toMatch(SECTION);
  const current = readme.replace(SECTION, (_all, open: string, close: string) => `${open}${table()}${close}`);
  await expect(current).toMatchFileSnapshot(fileURLToPath(README));
});

it("explains every situation of a drive", async () => {
  const readme = await readFile(README, "utf8");
  const unexplained = Object.keys(scriptedDrive).filter((name) => !readme.includes(`\n| \`${name}`));
  expect(unexplained).toEqual([]);
});
