#!/usr/bin/env node
/** The command: `taskferry serve`, `taskferry check`. */
import { createRequire } from "node:module";
import { isWorkflowError } from "@taskferry/core";
import { Command } from "commander";
import { readConfiguration } from "./config.js";
import { loadWorkflows, serve } from "./serve.js";

const { version } = createRequire(import.meta.url)("../package.json") as { version: string };
const DEFAULT = "taskferry.yaml";

const program = new Command("taskferry")
  .description("Carries MCP clients to workflow engines, from one YAML file")
  .version(version);

program
  .command("serve")
  .description(
    "serve the workflows of a configuration file: over HTTP if it has server.http, else to the host on stdio",
  )
  .argument("[file]", "the configuration file", DEFAULT)
  .option("--stdio", "serve stdio, whatever the file says")
  .option("--http", "serve HTTP, whatever the file says")
  .action(async (file: string, options: { stdio?: boolean; http?: boolean }) => {
    const config = await readConfiguration(file, process.env);
    const wanted = options.http === true || (options.stdio !== true && config.server.http !== undefined);
    const server = await serve(config, file, wanted ? "http" : "stdio");
    if (server.url !== undefined) process.stderr.write(`Serving MCP at ${server.url}\n`);
    for (const signal of ["SIGINT", "SIGTERM"] as const) {
      process.once(signal, () => void server.close().then(() => process.exit(0)));
    }
    await server.closed;
  });

program
  .command("check")
  .description("read a configuration file and load its engines, without serving anything")
  .argument("[file]", "the configuration file", DEFAULT)
  .action(async (file: string) => {
    const config = await readConfiguration(file, process.env);
    const workflows = await loadWorkflows(config, file);
    for (const { name, adapter, kind } of workflows)
      process.stdout.write(`${name}: a ${kind.kind} on ${adapter.engine}\n`);
  });

try {
  await program.parseAsync();
} catch (error) {
  // What is the operator's to mend is said in words; anything else is ours, and needs its trace.
  const ours =
    isWorkflowError(error) && (error.code === "configuration" || error.code === "store_unavailable");
  process.stderr.write(`${ours ? error.message : (error as Error).stack}\n`);
  process.exitCode = 1;
}
