/** Restate's real server, from npm, on free ports and on data of its own. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http2";
import { createRequire } from "node:module";
import { createServer as createSocket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { createEndpointHandler } from "@restatedev/restate-sdk";

type Services = Parameters<typeof createEndpointHandler>[0]["services"];

export interface Restate {
  readonly ingressUrl: string;
  readonly adminUrl: string;
  /** Serves workflows in this process and tells Restate of them. */
  deploy(services: Services): Promise<void>;
  stop(): Promise<void>;
}

export async function startRestate(): Promise<Restate> {
  const folder = await mkdtemp(join(tmpdir(), "taskferry-restate-"));
  const [ingress, admin, node] = [await freePort(), await freePort(), await freePort()];
  const args = ["--no-logo", "--listen-mode", "tcp", "--bind-ip", "127.0.0.1", "--bind-port", String(node)];
  const child = spawn(binary(), [...args, "--base-dir", folder, "--node-name", "kit"], {
    stdio: "ignore",
    env: {
      ...process.env,
      RESTATE_INGRESS__BIND_PORT: String(ingress),
      RESTATE_ADMIN__BIND_PORT: String(admin),
      // A laptop's share: the default is 24 partitions and 2 GiB.
      RESTATE_DEFAULT_NUM_PARTITIONS: "1",
      RESTATE_ROCKSDB_TOTAL_MEMORY_SIZE: "128 MiB",
      RESTATE_DISABLE_TELEMETRY: "true",
    },
  });
  const ingressUrl = `http://127.0.0.1:${ingress}`;
  const adminUrl = `http://127.0.0.1:${admin}`;
  await Promise.all([isUp(child, `${adminUrl}/query`, QUERY), isUp(child, `${ingressUrl}/restate/health`)]);

  const endpoints: (() => void)[] = [];
  return {
    ingressUrl,
    adminUrl,
    async deploy(services) {
      const endpoint = createServer(createEndpointHandler({ services, logger: sayNothing }));
      const sessions = new Set<{ destroy(): void }>();
      endpoint.on("session", (session) => sessions.add(session));
      const port = await freePort();
      endpoint.listen(port, "127.0.0.1");
      await once(endpoint, "listening");
      endpoints.push(() => {
        for (const session of sessions) session.destroy();
        endpoint.close();
      });
      const response = await fetch(`${adminUrl}/deployments`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ uri: `http://127.0.0.1:${port}` }),
      });
      if (!response.ok) throw new Error(`Restate does not take the deployment: ${await response.text()}`);
    },
    async stop() {
      const gone = child.exitCode === null ? once(child, "exit") : undefined;
      child.kill("SIGKILL");
      await gone;
      for (const close of endpoints) close();
      await rm(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** The program itself: the npm package's launcher would survive a SIGKILL of the launcher only. */
function binary(): string {
  const launcher = createRequire(import.meta.url).resolve("@restatedev/restate-server/package.json");
  const platform = `@restatedev/restate-server-${process.platform}-${process.arch}`;
  return createRequire(launcher).resolve(`${platform}/bin/restate-server`);
}

/** Answered only once the partitions have leaders, which is later than `/health` is. */
const QUERY: RequestInit = {
  method: "POST",
  headers: { accept: "application/json", "content-type": "application/json" },
  body: JSON.stringify({ query: "select id from sys_invocation" }),
};

async function isUp(child: ChildProcess, url: string, request: RequestInit = {}): Promise<void> {
  for (const deadline = Date.now() + 60_000; ; await delay(25)) {
    if ((await fetch(url, request).catch(() => undefined))?.ok) return;
    if (child.exitCode !== null) throw new Error(`Restate has ended with ${child.exitCode}`);
    if (Date.now() > deadline) throw new Error(`Restate does not answer at ${url}`);
  }
}

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createSocket().once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address() as { port: number };
      probe.close(() => resolve(port));
    });
  });
}

/** What the SDK would say is about runs that the kit stops, and about a server that is taken down under it. */
function sayNothing(): void {}
