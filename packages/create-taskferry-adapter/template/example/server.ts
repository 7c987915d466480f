/** An MCP server on stdio whose one tool is a job of the engine. */
import { createTaskEngine, defineWorkflow, serveStdio } from "@taskferry/core";
import { sqliteStore } from "@taskferry/core/sqlite";
import { myEngine } from "../src/index.js";

const engine = await createTaskEngine({
  workflows: [
    defineWorkflow({
      name: "run_job",
      description: "Runs a job",
      input: { type: "object", properties: { note: { type: "string" } } },
      adapter: myEngine({ token: process.env["MY_ENGINE_TOKEN"] ?? "" }),
    }),
  ],
  store: await sqliteStore({ path: "tasks.db" }),
});
serveStdio(engine, { name: "my-engine", version: "0.1.0" });
