/**
 * What somebody has who has never seen this repository: an empty folder, the tarballs, npm and TypeScript. Compiles a
 * small server and its client with every library's types checked, and runs them.
 */
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT, run, withPacked } from "./pack.js";

const FIXTURE = join(ROOT, "scripts", "consumer");
/** Long enough for a native addon to be compiled where its prebuilt binary cannot be had. */
const STEP_LIMIT_MS = 480_000;

await withPacked(async (packages) => {
  const folder = await mkdtemp(join(tmpdir(), "taskferry-consumer-"));
  try {
    await cp(FIXTURE, folder, { recursive: true });
    await borrowQuickstart(folder);
    const { devDependencies } = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8"));
    const core = JSON.parse(await readFile(join(ROOT, "packages", "core", "package.json"), "utf8"));
    const client = "@modelcontextprotocol/client";
    const manifest = {
      name: "consumer",
      private: true,
      type: "module",
      dependencies: Object.fromEntries(packages.map(({ name, tarball }) => [name, `file:${tarball}`])),
      devDependencies: {
        [client]: core.devDependencies[client],
        "@types/node": devDependencies["@types/node"],
        typescript: devDependencies.typescript,
      },
    };
    await writeFile(join(folder, "package.json"), JSON.stringify(manifest, null, 2));
    await step("npm install", folder, "npm", ["install", "--no-audit", "--no-fund"]);
    await step("tsc", folder, "npx", ["--no-install", "tsc", "-p", "."]);
    const programs = await readdir(join(folder, "dist", "src"));
    for (const file of programs.filter((name) => name.endsWith(".js"))) {
      await step(`node ${file}`, folder, process.execPath, [join("dist", "src", file)]);
    }
    console.log(`consumer: ${packages.length} packages install, compile and run`);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}).catch((error: unknown) => {
  console.error((error as Error).message);
  process.exitCode = 1;
});

/** The quickstart's server, as the example has it: `src/quickstart.ts` talks to it. */
async function borrowQuickstart(folder: string): Promise<void> {
  const example = join(ROOT, "examples", "quickstart");
  for (const file of ["server.ts", "workflows.ts"]) {
    await cp(join(example, "src", file), join(folder, "quickstart", file));
  }
  // The server looks for its commands beside the folder that it is compiled into.
  await cp(join(example, "scripts"), join(folder, "dist", "scripts"), { recursive: true });
}

async function step(name: string, cwd: string, command: string, args: string[]): Promise<void> {
  const began = Date.now();
  try {
    const { stdout } = await run(command, args, { cwd, timeout: STEP_LIMIT_MS });
    console.log(`ok      ${name} (${((Date.now() - began) / 1000).toFixed(1)} s) ${stdout.trim()}`);
  } catch (error) {
    const {
      stdout = "",
      stderr = "",
      message,
    } = error as { stdout?: string; stderr?: string; message: string };
    throw new Error(`FAILED  ${name}: ${message}\n${stdout}${stderr}`);
  }
}
