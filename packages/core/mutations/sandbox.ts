/** A copy of this package that may be broken, and tests run in it. */
import { spawn } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const PACKAGE = fileURLToPath(new URL("../../", import.meta.url));
const ROOT = fileURLToPath(new URL("../../../../", import.meta.url));
/** A test run that takes longer says nothing any more. */
const RUN_LIMIT_MS = 60_000;

/** One test and how it went. */
export interface TestOutcome {
  readonly name: string;
  readonly passed: boolean;
}

export class Sandbox {
  private constructor(private readonly root: string) {}

  static async create(): Promise<Sandbox> {
    const root = await mkdtemp(join(tmpdir(), "taskferry-mutations-"));
    const copy = join(root, "packages", "core");
    await mkdir(copy, { recursive: true });
    for (const entry of ["src", "test", "package.json"]) {
      await cp(join(PACKAGE, entry), join(copy, entry), { recursive: true });
    }
    // `dist`: the fixtures import this package by its name, and what they use of it is not what is tested.
    for (const entry of ["node_modules", "dist"]) await symlink(join(PACKAGE, entry), join(copy, entry));
    await symlink(join(ROOT, "node_modules"), join(root, "node_modules"));
    return new Sandbox(root);
  }

  private get package(): string {
    return join(this.root, "packages", "core");
  }

  /** Replaces the one occurrence of a text. @returns what undoes it; `undefined` unless it occurs exactly once */
  async mutate(file: string, search: string, replace: string): Promise<(() => Promise<void>) | undefined> {
    const path = join(this.package, "src", file);
    const source = await readFile(path, "utf8").catch(() => "");
    if (source.split(search).length !== 2) return undefined;
    await writeFile(
      path,
      source.replace(search, () => replace),
    );
    return () => writeFile(path, source);
  }

  /** Runs the tests of a file whose names begin so. @returns those that ran; `undefined` if the run said nothing */
  async run(file: string, names: readonly string[]): Promise<readonly TestOutcome[] | undefined> {
    const report = join(this.root, "report.json");
    await rm(report, { force: true });
    const pattern = `^(${names.map(escaped).join("|")})`;
    const args = ["run", join("test", file), "--testNamePattern", pattern];
    const output = ["--reporter", "json", "--outputFile", report];
    const child = spawn(
      process.execPath,
      [join(ROOT, "node_modules", "vitest", "vitest.mjs"), ...args, ...output, "--maxWorkers", "1"],
      { cwd: this.package, stdio: "ignore", timeout: RUN_LIMIT_MS, killSignal: "SIGKILL" },
    );
    await new Promise((resolve) => child.once("close", resolve));
    try {
      return outcomes(JSON.parse(await readFile(report, "utf8")));
    } catch {
      return undefined;
    }
  }

  remove(): Promise<void> {
    return rm(this.root, { recursive: true, force: true });
  }
}

interface Report {
  readonly testResults: readonly {
    readonly assertionResults: readonly { readonly title: string; readonly status: string }[];
  }[];
}

function outcomes({ testResults }: Report): TestOutcome[] {
  return testResults
    .flatMap(({ assertionResults }) => assertionResults)
    .filter(({ status }) => status === "passed" || status === "failed")
    .map(({ title, status }) => ({ name: title, passed: status === "passed" }));
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
}
