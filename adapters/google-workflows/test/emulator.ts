/**
 * gcw-emulator: a Google Cloud Workflows that somebody else wrote and that really runs workflow source.
 *
 * Built by Go into a folder of its own under the temporary directory and never into the repository. Where it cannot be
 * had (no Go, too old a Go, a proxy that does not serve it) the lane says why and is skipped, unless
 * TASKFERRY_REQUIRE_LANES names `gcw`.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { access, mkdir } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const VERSION = "v0.3.0";
const PACKAGE = `github.com/lemonberrylabs/gcw-emulator/cmd/gcw-emulator@${VERSION}`;
const FOLDER = join(tmpdir(), `taskferry-gcw-emulator-${VERSION}`);
const INSTALL_LIMIT_MS = 300_000;

export type Lane = { readonly binary: string } | { readonly missing: string };

/** Finds or builds the emulator. `GCW_EMULATOR` may name a binary. */
export async function findEmulator(): Promise<Lane> {
  const own = process.env["GCW_EMULATOR"];
  const binary = own ?? join(FOLDER, process.platform === "win32" ? "gcw-emulator.exe" : "gcw-emulator");
  if (await exists(binary)) return { binary };
  if (own !== undefined) return { missing: `GCW_EMULATOR names ${own}, which is not there` };
  try {
    await mkdir(FOLDER, { recursive: true });
    const env = { ...process.env, GOBIN: FOLDER };
    // Outside of any Go module, where `go install` with a version works.
    await promisify(execFile)("go", ["install", PACKAGE], { env, cwd: FOLDER, timeout: INSTALL_LIMIT_MS });
    return { binary };
  } catch (error) {
    const { code, stderr, message } = error as Error & { code?: unknown; stderr?: string };
    const said = (stderr?.trim() || message).replace(/\s+/g, " ").slice(0, 500);
    const why = code === "ENOENT" ? "Go is not installed" : said;
    return { missing: `go install ${PACKAGE}: ${why}` };
  }
}

/** Whether a skipped lane is a failure. */
export function isRequired(): boolean {
  return (process.env["TASKFERRY_REQUIRE_LANES"] ?? "").split(/[,\s]+/).includes("gcw");
}

export interface Emulator {
  readonly grpcEndpoint: string;
  readonly restEndpoint: string;
  deploy(project: string, location: string, workflow: string, source: string): Promise<void>;
  close(): Promise<void>;
}

/** Starts the emulator on free ports of 127.0.0.1 and waits until both answer. */
export async function startEmulator(binary: string): Promise<Emulator> {
  const [rest, grpc] = [await freePort(), await freePort()];
  const args = ["--host", "127.0.0.1", "--port", String(rest), "--grpc-port", String(grpc)];
  const child = spawn(binary, args, { stdio: "ignore" });
  const restEndpoint = `http://127.0.0.1:${rest}`;
  await answers(child, async () => {
    const response = await fetch(`${restEndpoint}/v1/projects/p/locations/l/workflows`);
    return response.ok;
  });
  return {
    grpcEndpoint: `127.0.0.1:${grpc}`,
    restEndpoint,
    async deploy(project, location, workflow, sourceContents) {
      const url = `${restEndpoint}/v1/projects/${project}/locations/${location}/workflows?workflowId=${workflow}`;
      const headers = { "content-type": "application/json" };
      const response = await fetch(url, {
        method: "POST",
        headers,
        body: JSON.stringify({ sourceContents }),
      });
      if (!response.ok) throw new Error(`gcw-emulator did not take ${workflow}: ${await response.text()}`);
    },
    async close() {
      const exit = new Promise((resolve) => child.once("exit", resolve));
      if (child.kill()) await exit;
    },
  };
}

async function answers(child: ChildProcess, probe: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 200; tries++) {
    if (child.exitCode !== null) throw new Error(`gcw-emulator ended with code ${child.exitCode}`);
    if (await probe().catch(() => false)) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error("gcw-emulator did not answer within 10 s");
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
