/**
 * Step Functions engines that somebody else wrote, for tests. Each is found or installed with pip in a private
 * environment below the system's temporary directory.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { SFNClient } from "@aws-sdk/client-sfn";
import { clientOf } from "./client.js";

const run = promisify(execFile);

interface LaneRecipe {
  readonly package: string;
  readonly version: string;
  /** Fails where the package cannot be used. */
  readonly probe: string;
  readonly command: (port: string) => readonly string[];
  readonly env: (port: string) => Readonly<Record<string, string>>;
}

const RECIPES = {
  moto: {
    package: "moto[server,stepfunctions]",
    version: "5.2.5",
    probe: "import moto.server, moto.stepfunctions.parser.models",
    command: (port) => [fileURLToPath(new URL("../start_moto.py", import.meta.url)), port],
    env: () => ({}),
  },
  ministack: {
    package: "ministack",
    version: "1.5.33",
    probe: "import ministack.app",
    command: () => ["-m", "ministack"],
    env: (port) => ({
      BIND_HOST: "127.0.0.1",
      GATEWAY_PORT: port,
      IOT_MTLS_ENABLED: "0",
      SFTP_ENABLED: "0",
      SERVICES: "states,sqs,lambda",
    }),
  },
} as const satisfies Record<string, LaneRecipe>;

/** The names of the lanes. */
export type LaneName = keyof typeof RECIPES;

/** An engine at work. */
export interface Lane {
  readonly endpoint: string;
  /** A client of the engine. Its owner closes it. */
  client(): SFNClient;
  close(): Promise<void>;
}

const REQUIRED = new Set((process.env.TASKFERRY_REQUIRE_LANES ?? "").split(",").map((name) => name.trim()));
/** A plain test run does not wait long for an installation; a run that requires the lane does. */
const INSTALL_MS = { plain: 120_000, required: 600_000 };

/**
 * Starts an engine. `undefined` where it cannot be had, with the reason on the console.
 * @throws where `TASKFERRY_REQUIRE_LANES` names the lane
 */
export async function openLane(name: LaneName): Promise<Lane | undefined> {
  try {
    return await startLane(name);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    if (REQUIRED.has(name)) throw new Error(`Lane ${name} is required, but ${reason}`, { cause: error });
    console.warn(`Lane ${name} is skipped: ${reason}`);
    return undefined;
  }
}

/**
 * Starts an engine.
 * @throws Error with the reason, where it cannot be had
 */
export async function startLane(name: LaneName): Promise<Lane> {
  return launch(name, await findPython(name));
}

/** A Python that has the engine: our own environment, one that can be made, or the system's. */
async function findPython(name: LaneName): Promise<string> {
  const recipe: LaneRecipe = RECIPES[name];
  const home = join(tmpdir(), "taskferry-lanes", `${name}-${recipe.version}`);
  const own = join(home, "bin", "python");
  if (existsSync(own)) return own;
  try {
    await install(
      home,
      `${recipe.package}==${recipe.version}`,
      INSTALL_MS[REQUIRED.has(name) ? "required" : "plain"],
    );
    return own;
  } catch (error) {
    const works = await run("python3", ["-c", recipe.probe]).then(
      () => true,
      () => false,
    );
    if (works) return "python3";
    const [why = ""] = (error as Error).message.split("\n");
    throw new Error(`${recipe.package} is not there and could not be installed (${why})`, { cause: error });
  }
}

/** Made aside and then moved, so that two test runs do not meet in a half-made environment. */
async function install(home: string, requirement: string, timeout: number): Promise<void> {
  const aside = `${home}.${process.pid}`;
  mkdirSync(join(home, ".."), { recursive: true });
  try {
    await run("python3", ["-m", "venv", aside], { timeout });
    const pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", requirement];
    await run(join(aside, "bin", "python"), pip, { timeout });
    if (!existsSync(home)) renameSync(aside, home);
  } finally {
    rmSync(aside, { recursive: true, force: true });
  }
}

async function launch(name: LaneName, python: string): Promise<Lane> {
  const recipe: LaneRecipe = RECIPES[name];
  const port = String(await freePort());
  const child = spawn(python, recipe.command(port), {
    env: { ...process.env, ...recipe.env(port) },
    stdio: "ignore",
  });
  const endpoint = `http://127.0.0.1:${port}`;
  await answers(endpoint, child);
  return {
    endpoint,
    client: () => clientOf(endpoint),
    close: () => end(child),
  };
}

async function answers(endpoint: string, child: ChildProcess): Promise<void> {
  for (const until = Date.now() + 60_000; Date.now() < until; await delay(100)) {
    if (child.exitCode !== null || child.pid === undefined) throw new Error("the engine ended at once");
    const isUp = await fetch(endpoint).then(
      () => true,
      () => false,
    );
    if (isUp) return;
  }
  await end(child);
  throw new Error("the engine did not answer within 60 s");
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await ended;
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}
