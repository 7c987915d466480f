/** `node stdio-server.js taskferry|sdk`: one tool over stdio, with Taskferry or without. */
process.on("message", () => process.send?.(process.memoryUsage().rss));

if (process.argv[2] === "taskferry") {
  const { createTaskEngine, defineWorkflow, serveStdio } = await import("@taskferry/core");
  const { sqliteStore } = await import("@taskferry/core/sqlite");
  const { fakeEngine } = await import("./fake.js");
  const engine = await createTaskEngine({
    store: await sqliteStore({ path: ":memory:" }),
    workflows: [defineWorkflow({ name: "flow", adapter: fakeEngine().adapter })],
  });
  serveStdio(engine, { name: "bench", version: "0" });
} else {
  const { McpServer } = await import("@modelcontextprotocol/server");
  const { serveStdio } = await import("@modelcontextprotocol/server/stdio");
  const { z } = await import("zod");
  serveStdio(() => {
    const mcp = new McpServer({ name: "bench", version: "0" });
    mcp.registerTool("flow", { inputSchema: z.object({}) }, async () => ({ content: [] }));
    return mcp;
  });
}
