/** What somebody gets who has nothing but the published packages: it is made, installed, built, and its tests pass. */
import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const run = promisify(execFile);
const packages = fileURLToPath(new URL("../..", import.meta.url));
const INSTALL_MS = 420_000;

let home: string;
let program: string;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "taskferry-create-"));
  await mkdir(join(home, "tarballs"));
  for (const name of ["core", "testkit", "create-taskferry-adapter"]) {
    const args = ["-y", "pnpm@12", "pack", "--pack-destination", join(home, "tarballs")];
    await run("npx", args, { cwd: join(packages, name) });
  }
  // The packed program, not the one in this folder: a file that is not published would be missed.
  await run("tar", ["-xzf", await tarball("create-taskferry-adapter"), "-C", home]);
  program = join(home, "package", "dist", "main.js");
}, INSTALL_MS);
afterAll(() => rm(home, { recursive: true, force: true, maxRetries: 5 }));

async function tarball(name: string): Promise<string> {
  const files = await readdir(join(home, "tarballs"));
  return join(home, "tarballs", files.find((file) => file.includes(name)) ?? "");
}

async function create(...args: string[]): Promise<{ code: number; said: string }> {
  return run(process.execPath, [program, ...args], { cwd: home }).then(
    ({ stdout }) => ({ code: 0, said: stdout }),
    ({ code, stderr }) => ({ code, said: stderr }),
  );
}

/** Every file of a made package. */
async function filesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
}

describe("create-taskferry-adapter", () => {
  it("makes a package that installs, builds and passes the kit", { timeout: INSTALL_MS }, async () => {
    const { code, said } = await create("paper-mill");
    expect(code, said).toBe(0);
    const folder = join(home, "paper-mill");
    const files = await filesIn(folder);
    const texts = await Promise.all(files.map((file) => readFile(file, "utf8")));
    expect(texts.join("\n")).not.toMatch(/my-?engine/i);
    expect(files).toContain(join(folder, ".gitignore"));
    expect(texts[files.indexOf(join(folder, "src", "index.ts"))]).toContain("export function paperMill(");

    const install = ["install", "--no-audit", "--no-fund", "--ignore-scripts"];
    await run("npm", [...install, await tarball("core"), await tarball("testkit")], { cwd: folder });
    await lendSqlite(folder);
    await run("npm", ["run", "build"], { cwd: folder });
    const { stdout } = await run("npx", ["--no-install", "vitest", "run", "--reporter=json"], {
      cwd: folder,
    });
    const { numPassedTests, numFailedTests } = JSON.parse(stdout.slice(stdout.indexOf("{")));
    expect({ numFailedTests }).toEqual({ numFailedTests: 0 });
    expect(numPassedTests).toBeGreaterThan(75);
  });

  it.each(["My-Engine", "1st", "a--b"])("does not take %s for a name", async (name) => {
    expect(await create(name)).toMatchObject({ code: 1, said: expect.stringContaining("lower-case words") });
  });

  it("does not write into a folder that has something in it", async () => {
    await mkdir(join(home, "taken"));
    await writeFile(join(home, "taken", "work.txt"), "mine");
    expect(await create("taken")).toMatchObject({ code: 1, said: expect.stringContaining("not empty") });
    expect(await readdir(join(home, "taken"))).toEqual(["work.txt"]);
  });

  it.each([[[]], [["--help"]], [["one", "two"]]])("says how it is used: %j", async (args) => {
    expect(await create(...args)).toMatchObject({ code: 2, said: expect.stringContaining("npm create") });
  });
});

/** This workspace has the addon compiled, which would take a minute where no prebuilt one can be had. */
async function lendSqlite(folder: string): Promise<void> {
  const sqliteOf = (core: string) => dirname(createRequire(core).resolve("better-sqlite3/package.json"));
  const source = sqliteOf(join(packages, "core", "package.json"));
  const target = sqliteOf(join(folder, "node_modules", "@taskferry", "core", "package.json"));
  const version = async (place: string) =>
    JSON.parse(await readFile(join(place, "package.json"), "utf8")).version;
  if ((await version(source)) !== (await version(target))) {
    await run("npm", ["rebuild", "better-sqlite3"], { cwd: folder });
    return;
  }
  const built = join("build", "Release", "better_sqlite3.node");
  await cp(join(source, built), join(target, built));
}
