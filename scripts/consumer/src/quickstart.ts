/** The quickstart's server, from the packed packages, and a client of another maker. */
import { equal, ok } from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const home = await mkdtemp(join(tmpdir(), "taskferry-quickstart-"));
const client = new Client({ name: "consumer", version: "1.0.0" });
await client.connect(
  new StdioClientTransport({
    command: process.execPath,
    args: [fileURLToPath(new URL("../quickstart/server.js", import.meta.url))],
    env: { TASKFERRY_HOME: home, PATH: process.env["PATH"] ?? "" },
  }),
);
const { tools } = await client.listTools();
ok(tools.some(({ name }) => name === "count_words"));
const counted = await client.callTool({
  name: "count_words",
  arguments: { files: [fileURLToPath(import.meta.url)] },
});
equal(counted.isError ?? false, false, JSON.stringify(counted));
await client.close();
await rm(home, { recursive: true, force: true });
console.log("the quickstart's server ran a command");
