/** The fixtures that the official suite's `tasks-*` scenarios ask for, as an author would write them on Taskferry. */
import { setTimeout as sleep } from "node:timers/promises";
import { createTaskEngine, defineWorkflow, type HttpServer, serveHttp } from "@taskferry/core";
import { sqliteStore } from "@taskferry/core/sqlite";
import { asyncFunction, CallRefused } from "@taskferry/function";
import { z } from "zod";

const slowCompute = defineWorkflow({
  name: "slow_compute",
  description: "Sleeps for some seconds, then returns",
  input: z.object({ seconds: z.number().default(1), label: z.string().default("compute") }),
  adapter: asyncFunction(async ({ seconds, label }: { seconds: number; label: string }, { signal }) => {
    await sleep(seconds * 1000, undefined, { signal });
    return { label, seconds };
  }),
  pollMs: 100,
});

const failingJob = defineWorkflow({
  name: "failing_job",
  description: "Fails after a second",
  task: "required",
  adapter: asyncFunction(async (_input: unknown, { signal }) => {
    await sleep(1000, undefined, { signal });
    throw new Error("the job failed, as it always does");
  }),
  pollMs: 100,
});

const protocolErrorJob = defineWorkflow({
  name: "protocol_error_job",
  description: "Cannot be carried out",
  adapter: asyncFunction(async () => {
    throw new CallRefused("this call cannot be carried out");
  }),
  pollMs: 100,
});

const confirmDelete = defineWorkflow({
  name: "confirm_delete",
  description: "Deletes a file once that is confirmed",
  input: z.object({ filename: z.string().default("file.txt") }),
  adapter: asyncFunction(async ({ filename }: { filename: string }, { ask }) => {
    const answer = await ask({
      message: `Delete ${filename}?`,
      schema: z.object({ confirm: z.boolean().optional() }),
    });
    return answer.action === "accept" ? `Deleted ${filename}` : `Kept ${filename}`;
  }),
  pollMs: 100,
});

const multiInput = defineWorkflow({
  name: "multi_input",
  description: "Asks two things at once",
  adapter: asyncFunction(async (_input: unknown, { ask }) => {
    const [name, place] = await Promise.all([
      ask({ message: "Your name?", schema: z.object({ name: z.string().optional() }) }),
      ask({ message: "Your place?", schema: z.object({ place: z.string().optional() }) }),
    ]);
    return { name: name.action, place: place.action };
  }),
  pollMs: 100,
});

const askFirst = defineWorkflow({
  name: "test_tool_with_task",
  description: "Asks for a name, then greets at length",
  input: z.object({ user_name: z.string().optional() }),
  task: "required",
  before: ({ answers }) => {
    const answer = answers["user_name"];
    if (answer === undefined) {
      const properties = { name: { type: "string" } };
      return {
        ask: [{ key: "user_name", message: "What is your name?", schema: { type: "object", properties } }],
      };
    }
    if (answer.action !== "accept") return { refuse: "No name was given." };
    return { proceed: true, arguments: { user_name: String(answer.content?.["name"]) } };
  },
  adapter: asyncFunction(async ({ user_name }: { user_name: string }) => `Hello, ${user_name}!`),
  pollMs: 100,
});

/** Starts the server on a free port of the loopback. */
export async function startServer(): Promise<HttpServer> {
  const engine = await createTaskEngine({
    workflows: [slowCompute, failingJob, protocolErrorJob, confirmDelete, multiInput, askFirst],
    store: await sqliteStore({ path: ":memory:" }),
  });
  const server = await serveHttp(engine, {
    name: "taskferry-conformance",
    version: "0.0.0",
    setup(mcp) {
      mcp.registerTool(
        "greet",
        { description: "Greets", inputSchema: z.object({ name: z.string().default("world") }) },
        async ({ name }) => ({ content: [{ type: "text", text: `Hello, ${name}!` }] }),
      );
    },
  });
  return {
    ...server,
    async close() {
      await server.close();
      await engine.close();
    },
  };
}
