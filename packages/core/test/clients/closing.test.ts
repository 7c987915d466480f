/** A server that closes while requests are on their way: who has been heard is answered. */
import { expect, test, vi } from "vitest";
import { defineWorkflow } from "../../src/index.js";
import { testEngine } from "../support/engines.js";
import { gate } from "../support/gate.js";
import { modernRequest, TASKS } from "../support/raw-client.js";
import { overHttp } from "../support/serving.js";

test("a poll that reads the engine gets its answer", async () => {
  const read = gate();
  let reads = 0;
  const engine = await testEngine({
    workflows: [
      defineWorkflow({
        name: "flow",
        adapter: {
          engine: "slow",
          start: async ({ key }) => ({ ref: key }),
          async read() {
            reads += 1;
            if (reads > 1) await read.opened;
            return { native: "RUNNING", status: "working" };
          },
        },
        pollMs: 1,
      }),
    ],
  });
  const server = await overHttp(engine);
  const request = (method: string, params: object) =>
    modernRequest(server.url, method, params, { capabilities: TASKS });
  const { taskId } = (await request("tools/call", { name: "flow", arguments: {} })).result;
  await request("tasks/get", { taskId });
  const poll = request("tasks/get", { taskId });
  await vi.waitUntil(() => reads > 1, { timeout: 5_000, interval: 5 });
  const closed = server.close();
  read.open();
  expect(await poll).toMatchObject({ result: { status: "working" } });
  await closed;
});
