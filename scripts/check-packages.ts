/** Checks every package as a stranger would get it: what is in the tarball, its manifest (publint), its types (attw). */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { type Packed, ROOT, run, withPacked } from "./pack.js";

const REQUIRED_FILES = ["package/LICENSE", "package/README.md", "package/package.json"];
/** What must not be published: tests, build state, and anything that looks like a local file. */
const FORBIDDEN = /\/test\/|\.tsbuildinfo$|\.test\.|\/node_modules\/|\.env$|\.db$/;
/** A scaffold's files are data: a whole package, with tests and a manifest of its own. */
const TEMPLATE = "template/";

const failures = await withPacked(async (packages) => {
  let failed = 0;
  for (const packed of packages) {
    const problems = [...(await contents(packed)), ...(await manifest(packed)), ...(await types(packed))];
    console.log(`${problems.length === 0 ? "ok    " : "FAILED"}  ${packed.name}`);
    for (const problem of problems) console.log(`          ${problem}`);
    if (problems.length > 0) failed += 1;
  }
  console.log(`packages: ${packages.length - failed} passed, ${failed} failed`);
  return failed;
});
process.exitCode = failures === 0 ? 0 : 1;

async function contents({ tarball }: Packed): Promise<string[]> {
  const { stdout } = await run("tar", ["-tzf", tarball], { maxBuffer: 64 * 1024 * 1024 });
  const files = stdout.trim().split("\n");
  const missing = REQUIRED_FILES.filter((file) => !files.includes(file));
  const unwanted = files.filter((file) => FORBIDDEN.test(file) && !file.startsWith(`package/${TEMPLATE}`));
  const text = (await run("tar", ["-xzOf", tarball, "package/package.json"])).stdout;
  // A range of the workspace protocol that was not replaced cannot be installed by anybody.
  const unresolved = /"(workspace|link|file):/.test(text) ? ["package.json still has workspace ranges"] : [];
  return [
    ...missing.map((file) => `missing: ${file}`),
    ...unwanted.map((file) => `must not be published: ${file}`),
    ...unresolved,
  ];
}

async function manifest({ tarball }: Packed): Promise<string[]> {
  const bytes = await readFile(tarball);
  const packed = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  const { messages, pkg } = await publint({ pack: { tarball: packed }, strict: true });
  const isOfTemplate = ({ code, args }: (typeof messages)[number]) =>
    code === "NESTED_PACKAGE_JSON_FIELD_IGNORED" && args.filePath.startsWith(`./${TEMPLATE}`);
  const told = messages.filter((message) => !isOfTemplate(message));
  return told.map((message) => `publint: ${formatMessage(message, pkg, { color: false }) ?? message.code}`);
}

async function types({ tarball }: Packed): Promise<string[]> {
  const attw = join(ROOT, "node_modules", ".bin", "attw");
  try {
    await run(attw, [tarball, "--profile", "esm-only", "--format", "ascii", "--no-color", "--no-emoji"]);
    return [];
  } catch (error) {
    const { stdout = "", stderr = "" } = error as { stdout?: string; stderr?: string };
    return [`attw: ${(stdout + stderr).trim().replaceAll("\n", "\n          ")}`];
  }
}
