// Does what a stranger would: takes the published packages, which are packed here for the occasion, and an adapter's
// folder outside of this workspace; installs with npm; builds; plays the kit; runs the adapter's demo.
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const root = join(here, "..", "..");
const tarballs = join(here, ".tarballs");
const home = mkdtempSync(join(tmpdir(), "taskferry-custom-adapter-"));

function step(name, cwd, command, args) {
  const began = Date.now();
  execFileSync(command, args, { cwd, stdio: "inherit" });
  console.log(`== ${name}: ${((Date.now() - began) / 1000).toFixed(1)} s\n`);
}

try {
  rmSync(tarballs, { recursive: true, force: true });
  mkdirSync(tarballs);
  // A filtered run in a fresh clone has installed this folder's dependencies only, and it has none.
  const isInstalled = ["core", "testkit"].every((name) =>
    existsSync(join(root, "packages", name, "node_modules")),
  );
  if (!isInstalled) step("install", root, "npx", ["-y", "pnpm@12", "install", "--frozen-lockfile"]);
  step("build", root, "npx", ["-y", "pnpm@12", "exec", "tsc", "-b", "packages/testkit"]);
  for (const name of ["core", "testkit"]) {
    const pack = ["-y", "pnpm@12", "pack", "--pack-destination", tarballs];
    step(`pack ${name}`, join(root, "packages", name), "npx", pack);
  }

  cpSync(join(here, "adapter"), home, {
    recursive: true,
    filter: (file) => !/[\\/](?:node_modules|dist)$/.test(file),
  });
  const packed = readdirSync(tarballs).map((file) => join(tarballs, file));
  const quiet = ["--no-audit", "--no-fund", "--ignore-scripts"];
  step("npm install", home, "npm", ["install", ...quiet, ...packed]);
  lendSqlite();

  step("build the adapter", home, "npm", ["run", "build"]);
  step("play the kit on Restate", home, "npm", ["test"]);
  step("demo", home, "npm", ["run", "demo"]);
} finally {
  rmSync(home, { recursive: true, force: true, maxRetries: 5 });
}

/** The one install script that matters compiles SQLite for minutes where no prebuilt one can be had. This workspace has one. */
function lendSqlite() {
  const sqliteOf = (core) => dirname(createRequire(core).resolve("better-sqlite3/package.json"));
  const folder = sqliteOf(join(root, "packages", "core", "package.json"));
  const target = sqliteOf(join(home, "node_modules", "@taskferry", "core", "package.json"));
  const versionIn = (place) => createRequire(import.meta.url)(join(place, "package.json")).version;
  const built = join("build", "Release", "better_sqlite3.node");
  if (versionIn(folder) === versionIn(target) && existsSync(join(folder, built))) {
    cpSync(join(folder, built), join(target, built), { recursive: true });
  } else {
    step("npm rebuild better-sqlite3", home, "npm", ["rebuild", "better-sqlite3"]);
  }
}
