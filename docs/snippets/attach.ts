import { McpServer } from "@modelcontextprotocol/server";
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { attach, createTaskEngine, defineWorkflow } from "@taskferry/core";
import { sqliteStore } from "@taskferry/core/sqlite";
import { stepFunctions } from "@taskferry/step-functions";
import { z } from "zod";

// #region state-machine
const nightlyReport = defineWorkflow({
  name: "nightly_report",
  input: z.object({ day: z.iso.date() }),
  adapter: stepFunctions({
    stateMachineArn: "arn:aws:states:eu-central-1:123456789012:stateMachine:NightlyReport",
  }),
});
// #endregion state-machine

const engine = await createTaskEngine({
  workflows: [nightlyReport],
  store: await sqliteStore({ path: ":memory:" }),
});

// #region attach
const server = new McpServer({ name: "reports", version: "1.0.0" });
server.registerTool("ping", {}, async () => ({ content: [{ type: "text", text: "pong" }] }));
attach(server, engine);
await server.connect(new StdioServerTransport());
// #endregion attach
