/** The server that hostile clients meet. Prints its URL, then its memory whenever it is asked on stdin. */
import { createTaskEngine, defineWorkflow, serveHttp } from "@taskferry/core";
import { sqliteStore } from "@taskferry/core/sqlite";

const engine = await createTaskEngine({
  store: await sqliteStore({ path: ":memory:" }),
  limits: {
    createPerMinute: 1e9,
    getPerMinute: 1e9,
    resultPerMinute: 1e9,
    listPerMinute: 1e9,
    concurrentTasks: 1e9,
    blockedRequests: 1e9,
  },
  retention: { defaultMs: 500 },
  timing: { sweepMs: 200, tombstoneMs: 500, auditMs: 500 },
  workflows: [
    defineWorkflow({
      name: "flow",
      pollMs: 200,
      onAbandon: "stop",
      adapter: {
        engine: "endless",
        startsOnce: true,
        start: async ({ key }) => ({ ref: { key, stopped: false } }),
        read: async (ref) => ({
          native: "RUNNING",
          status: stopped.has(JSON.stringify(ref)) ? "cancelled" : "working",
        }),
        stop: async (ref) => {
          stopped.add(JSON.stringify(ref));
        },
      },
    }),
  ],
});
const stopped = new Set<string>();
const server = await serveHttp(engine, { name: "hostile", version: "0", inlineWaitMs: 200 });
process.stdout.write(`${server.url}\n`);
process.stdin.on("end", () => process.exit());
process.stdin.on("data", () => {
  globalThis.gc?.();
  process.stdout.write(`${process.memoryUsage().heapUsed}\n`);
});
