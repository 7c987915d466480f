/** Every state of an execution, as clients of a Taskferry server see it. */
import { describe, expect, test } from "vitest";
import type { CloudExecution } from "../emulator/src/cloud.js";
import { lookUntil, serve, theExecution, WAYS } from "./serving.js";

const unknownState = { gRPC: 42, REST: "LEVITATING" } as const;

interface End {
  readonly what: string;
  readonly fields: Partial<CloudExecution>;
  /** 2025-11-25 calls a task failed whose result is an error. */
  readonly isError?: boolean;
  readonly text: RegExp;
  readonly value?: unknown;
}

const ENDS: readonly End[] = [
  {
    what: "SUCCEEDED with JSON",
    fields: { state: "SUCCEEDED", result: '{"shipped":3}' },
    text: /"shipped":\s*3/,
    value: { shipped: 3 },
  },
  { what: "SUCCEEDED with text", fields: { state: "SUCCEEDED", result: "no JSON" }, text: /^no JSON/ },
  { what: "SUCCEEDED without a result", fields: { state: "SUCCEEDED" }, text: /returned nothing/ },
  {
    what: "FAILED with a payload",
    fields: {
      state: "FAILED",
      error: {
        payload: '{"message":"Out of paddles","tags":["OutOfStock"]}',
        stackTrace: { elements: [{ step: "refuse", routine: "main", position: { line: "33" } }] },
      },
    },
    isError: true,
    text: /OutOfStock: Out of paddles[\s\S]*in step "refuse", routine "main", line 33/,
  },
  {
    what: "FAILED with text",
    fields: { state: "FAILED", error: { payload: "it broke", context: 'in step "pack"' } },
    isError: true,
    text: /it broke[\s\S]*in step "pack"/,
  },
  {
    what: "FAILED without a word",
    fields: { state: "FAILED" },
    isError: true,
    text: /The workflow failed without a message/,
  },
];

describe.each(WAYS)("$generation over $transport", ({ transport, generation }) => {
  test("QUEUED, ACTIVE with moving steps, SUCCEEDED", async () => {
    const { cloud, connect } = await serve(transport);
    cloud.slots = 0;
    const client = await connect(generation);
    const task = await client.start({ orderId: "o-1" });
    const queued = await lookUntil(client, task, ({ message }) => /^Queued/.test(message));
    expect(queued.status).toBe("working");
    cloud.slots = 1;
    const { id } = await theExecution(cloud);
    for (const step of ["reserve", "pack"]) {
      cloud.update(id, { steps: [{ routine: "main", step }] });
      const { status } = await lookUntil(client, task, ({ message }) => message.startsWith(`Step ${step}`));
      expect(status).toBe("working");
    }
    cloud.succeed(id, '{"shipped":true}');
    expect(await client.end(task)).toMatchObject({ status: "completed", value: { shipped: true } });
    expect(cloud.count("createExecution")).toBe(1);
  });

  test.each(ENDS)("$what", async ({ fields, isError = false, text, value }) => {
    const { cloud, connect } = await serve(transport);
    const client = await connect(generation);
    const task = await client.start();
    cloud.update((await theExecution(cloud)).id, { ...fields, endedMs: Date.now() });
    const end = await client.end(task);
    expect(end.status).toBe(isError && generation === "2025-11-25" ? "failed" : "completed");
    expect(end.isError).toBe(isError);
    expect(end.text).toMatch(text);
    if (value !== undefined) expect(end.value).toEqual(value);
  });

  test("CANCELLED by somebody in the console", async () => {
    const { cloud, connect } = await serve(transport);
    const client = await connect(generation);
    const task = await client.start();
    cloud.cancel((await theExecution(cloud)).id);
    expect((await client.end(task)).status).toBe("cancelled");
    expect(cloud.count("cancelExecution")).toBe(0);
  });

  test("UNAVAILABLE is no end: it says why, and may come back", async () => {
    const { cloud, connect } = await serve(transport);
    const client = await connect(generation);
    const task = await client.start();
    const { id } = await theExecution(cloud);
    cloud.update(id, { state: "UNAVAILABLE", stateError: { details: "key disabled", type: "KMS_ERROR" } });
    const seen = await lookUntil(client, task, ({ message }) => /key disabled/.test(message));
    expect(seen.status).toBe("working");
    cloud.update(id, { state: "ACTIVE" });
    await lookUntil(client, task, ({ message }) => /^Running/.test(message));
    cloud.succeed(id, "1");
    expect((await client.end(task)).status).toBe("completed");
  });

  test("UNAVAILABLE for too long is lost, and says so", async () => {
    const { cloud, connect } = await serve(transport, { adapter: { unavailableAfterMs: 1 } });
    const client = await connect(generation);
    const task = await client.start();
    cloud.update((await theExecution(cloud)).id, { state: "UNAVAILABLE" });
    const end = await client.end(task);
    expect(end.status).toBe("failed");
    expect(end.error ?? end.text).toMatch(/unavailable/i);
  });

  test.each(["STATE_UNSPECIFIED", unknownState[transport]])("%s keeps the last status", async (state) => {
    const { cloud, connect } = await serve(transport);
    const client = await connect(generation);
    const task = await client.start();
    const { id } = await theExecution(cloud);
    cloud.update(id, { steps: [{ routine: "main", step: "pack" }] });
    await lookUntil(client, task, ({ message }) => message.startsWith("Step pack"));
    cloud.update(id, { state });
    const reads = cloud.count("getExecution");
    const seen = await lookUntil(client, task, () => cloud.count("getExecution") > reads + 1);
    expect(seen.status).toBe("working");
    cloud.succeed(id, "1");
    expect((await client.end(task)).status).toBe("completed");
  });
});
