/** The server under fire: `node server.js <options as JSON>`. Prints its URL. */
import { createTaskEngine, defineWorkflow, serveHttp } from "@taskferry/core";
import { postgresStore } from "@taskferry/core/postgres";
import { sqliteStore } from "@taskferry/core/sqlite";
import { type Fault, faultyAdapter, faultyStore } from "./faults.js";
import { type EngineKind, fileEngine } from "./file-engine.js";

/** What the harness asks for. */
export interface ServerOptions {
  readonly database: { readonly path: string } | { readonly url: string; readonly schema: string };
  readonly engineFolder: string;
  readonly kind: EngineKind;
  /** How long ended tasks are kept, in milliseconds. */
  readonly retentionMs: number;
  readonly fault?: Fault;
}

const options = JSON.parse(process.argv[2] ?? "{}") as ServerOptions;
const { database, engineFolder, kind, fault, retentionMs } = options;
const store =
  "path" in database
    ? await sqliteStore({ path: database.path })
    : await postgresStore({ connectionString: database.url, schema: database.schema, maxConnections: 3 });
const engine = await createTaskEngine({
  store: faultyStore(store, fault),
  workflows: [
    defineWorkflow({
      name: "flow",
      adapter: faultyAdapter(fileEngine(engineFolder, kind), fault),
      pollMs: 20,
    }),
  ],
  retention: { defaultMs: retentionMs },
  timing: { leaseMs: 400, tickMs: 40, sweepMs: 100, startWaitMs: 1_000 },
});
const server = await serveHttp(engine, { name: "chaos", version: "0", inlineWaitMs: 1_000 });
process.stdout.write(`${server.url}\n`);
process.once("SIGTERM", async () => {
  await server.close();
  await engine.close();
  process.exit(0);
});
