/** The limit of tasks at once, which is counted for a moment ahead where it is far away. */
import { expect, test } from "vitest";
import { defineWorkflow, LOCAL_OWNER, principalOwner } from "../../src/index.js";
import { testEngine } from "../support/engines.js";

const running = defineWorkflow({
  name: "flow",
  adapter: {
    engine: "busy",
    start: async ({ key }) => ({ ref: key }),
    read: async () => ({ native: "RUNNING", status: "working" }),
  },
});

test.each([1, 3, 10])("%i at once, and not one more, whether they come together or in turn", async (most) => {
  const engine = await testEngine({ workflows: [running], limits: { concurrentTasks: most } });
  const create = (owner = LOCAL_OWNER) =>
    engine.create({ owner, generation: "2026-07-28", workflow: "flow", arguments: {} });
  for (let i = 1; i < most; i++) await create();
  const together = await Promise.allSettled(Array.from({ length: 5 }, () => create()));
  const refused = together.flatMap((each) => (each.status === "rejected" ? [each.reason] : []));
  expect(refused).toHaveLength(4);
  expect(refused[0]).toMatchObject({ code: "limit_exceeded", data: { limit: "concurrentTasks" } });
  await expect(create()).rejects.toMatchObject({ code: "limit_exceeded" });
  await create(principalOwner({ issuer: "test", subject: "somebody else" }));
});

test("together from the first on", async () => {
  const engine = await testEngine({ workflows: [running], limits: { concurrentTasks: 4 } });
  const create = () =>
    engine.create({ owner: LOCAL_OWNER, generation: "2026-07-28", workflow: "flow", arguments: {} });
  const together = await Promise.allSettled(Array.from({ length: 20 }, create));
  expect(together.filter(({ status }) => status === "fulfilled")).toHaveLength(4);
});

test("the same call twice at once, as the last that is allowed, is one task", async () => {
  const engine = await testEngine({ workflows: [running], limits: { concurrentTasks: 1 } });
  const create = () =>
    engine.create({
      owner: LOCAL_OWNER,
      generation: "2026-07-28",
      workflow: "flow",
      arguments: {},
      idempotencyKey: "key",
    });
  const [first, second] = await Promise.all([create(), create()]);
  expect(second.task.taskId).toBe(first.task.taskId);
});
