// #region server
import { createTaskEngine, defineWorkflow, serveStdio } from "@taskferry/core";
import { sqliteStore } from "@taskferry/core/sqlite";
import { localProcess } from "@taskferry/process";
import { z } from "zod";

const countLines = defineWorkflow({
  name: "count_lines",
  description: "Counts the lines of a file",
  input: z.object({ file: z.string() }),
  adapter: localProcess({ command: ["wc", "-l", "--", "{{file}}"] }),
});

const engine = await createTaskEngine({
  workflows: [countLines],
  store: await sqliteStore({ path: "tasks.db" }),
});
const server = serveStdio(engine, { name: "lines", version: "1.0.0" });
await server.closed;
await engine.close();
// #endregion server
