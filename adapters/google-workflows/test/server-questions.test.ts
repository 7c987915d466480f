/** Callbacks behind a Taskferry server: asked, answered, declined, timed out, answered elsewhere, and what goes wrong on the way. */
import { describe, expect, test } from "vitest";
import {
  CloudFault,
  type Fault,
  type Operation,
  type Script,
  WorkflowFailure,
} from "../emulator/src/cloud.js";
import { neverAnswers } from "./clients.js";
import type { Transport } from "./harness.js";
import { lookUntil, serve, theExecution, WAYS } from "./serving.js";

const refuse = (code: string, times = 1): Fault => ({
  kind: "refuse",
  fault: new CloudFault(code, "words", 0.05),
  times,
});

const PASSING: readonly (readonly [what: string, Operation, Fault])[] = [
  ["the list is unavailable (503)", "listCallbacks", refuse("UNAVAILABLE", 2)],
  ["the list breaks", "listCallbacks", { kind: "cut" }],
  ["the callback is unavailable (503)", "sendCallback", refuse("UNAVAILABLE")],
  ["the callback's quota is used up (429)", "sendCallback", refuse("RESOURCE_EXHAUSTED")],
  ["the callback's connection breaks before", "sendCallback", { kind: "cut" }],
  ["the callback's connection breaks after", "sendCallback", { kind: "loseAnswer" }],
];

const schema = {
  type: "object",
  properties: { reason: { type: "string" } },
  required: ["reason"],
} as const;

const approve: Script = async ({ step, endpoint, waitFor }) => {
  step("wait_for_approval");
  return waitFor(endpoint());
};

describe.each(WAYS)("$generation over $transport", ({ transport, generation }) => {
  test.each(PASSING)("asked and answered once, though %s", async (_what, operation, fault) => {
    const { cloud, connect } = await serving(transport, approve);
    cloud.inject(operation, fault);
    const client = await connect(generation, (message) => {
      expect(message).toBe("Pay?");
      return { reason: "because" };
    });
    const end = await client.end(await client.start());
    expect(end).toMatchObject({
      status: "completed",
      value: { action: "accept", content: { reason: "because" } },
    });
    await theExecution(cloud);
  });

  test("declined", async () => {
    const { connect } = await serving(transport, approve);
    const client = await connect(generation, () => undefined);
    expect(await client.end(await client.start())).toMatchObject({
      status: "completed",
      value: { action: "decline" },
    });
  });

  test("two questions one after the other, each with its own answer", async () => {
    const twice: Script = async ({ step, endpoint, waitFor }) => {
      step("wait_for_approval");
      const first = await waitFor(endpoint());
      step("once_more");
      return { first, second: await waitFor(endpoint()) };
    };
    const { connect } = await serving(transport, twice);
    const client = await connect(generation, (message) => ({ reason: message }));
    const { value } = await client.end(await client.start());
    expect(value).toMatchObject({
      first: { content: { reason: "Pay?" } },
      second: { content: { reason: "Sure?" } },
    });
  });

  test("a wait that times out ends as the workflow says", async () => {
    let timeOut = () => {};
    const timedOut = new Promise<void>((resolve) => {
      timeOut = resolve;
    });
    const { connect } = await serving(transport, async ({ step, endpoint, waitFor }) => {
      step("wait_for_approval");
      return waitFor(endpoint(), timedOut);
    });
    const client = await connect(generation, neverAnswers);
    const task = await client.start();
    await lookUntil(client, task, ({ status }) => status === "input_required");
    timeOut();
    await lookUntil(client, task, ({ status }) => status !== "input_required");
    // Who is being asked waits for the answer; another session hears how it ended.
    const end = await (await connect(generation)).end(task);
    expect(end.isError).toBe(true);
    expect(end.text).toMatch(/TimeoutError: timed out/);
  });

  test("a callback that somebody else calls is no longer asked", async () => {
    const { cloud, connect } = await serving(transport, approve);
    const client = await connect(generation, neverAnswers);
    const task = await client.start();
    await lookUntil(client, task, ({ status }) => status === "input_required");
    const { id, callbacks } = await theExecution(cloud);
    const [callback] = callbacks.values();
    cloud.send(id, callback?.id ?? "", "POST", '{"by":"somebody else"}');
    await lookUntil(client, task, ({ status }) => status !== "input_required");
    expect(await (await connect(generation)).end(task)).toMatchObject({
      status: "completed",
      value: { by: "somebody else" },
    });
    expect(cloud.count("sendCallback")).toBe(0);
  });

  test("an account that may not list callbacks hears how the run ends, and is told what is missing", async () => {
    const { cloud, connect } = await serving(transport, approve);
    cloud.inject("listCallbacks", refuse("PERMISSION_DENIED", 10_000));
    const client = await connect(generation, neverAnswers);
    const task = await client.start();
    const { status } = await lookUntil(client, task, ({ message }) =>
      /its callbacks cannot be listed \(PERMISSION_DENIED\)/.test(message),
    );
    expect(status).toBe("working");
    cloud.fail((await theExecution(cloud)).id, new WorkflowFailure({ payload: "given up" }).error);
    expect((await client.end(task)).text).toMatch(/given up/);
  });
});

function serving(transport: Transport, script: Script) {
  return serve(transport, {
    script,
    adapter: {
      questions: {
        steps: { wait_for_approval: { message: "Pay?", schema }, once_more: { message: "Sure?", schema } },
      },
    },
  });
}
