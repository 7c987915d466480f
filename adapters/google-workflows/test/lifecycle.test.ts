import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { WorkflowFailure } from "../emulator/src/cloud.js";
import { type Harness, harness, newKey, readRequest, readUntil, signal, TRANSPORTS } from "./harness.js";

const ended = (status: string) => (state: { status: string }) => state.status === status;

describe.each(TRANSPORTS)("an execution's life over %s", (transport) => {
  let h: Harness;
  beforeEach(async () => {
    h = await harness(transport);
  });
  afterEach(() => h.close());

  const start = (input: Parameters<ReturnType<Harness["adapter"]>["start"]>[0]["input"], key = newKey()) =>
    h.adapter().start({ key, input, retry: false, signal: signal() });

  test("runs from queued over moving steps to its result", async () => {
    h.cloud.deploy({ id: "orders", location: "us-central1" });
    h.cloud.slots = 0;
    const run = await start({ n: 1 });
    expect(run.state).toMatchObject({ native: "QUEUED", status: "submitted" });
    const id = String(run.ref).split("/").at(-1) ?? "";

    const steps = [{ routine: "main", step: "reserve" }];
    h.cloud.update(id, { state: "ACTIVE", startedMs: Date.now(), steps });
    const adapter = h.adapter();
    expect(await adapter.read(run.ref, readRequest())).toMatchObject({
      native: "ACTIVE",
      status: "working",
      message: "Step reserve · revision 000001-27f",
    });
    h.cloud.update(id, { steps: [...steps, { routine: "charge", step: "call_bank" }] });
    expect((await adapter.read(run.ref, readRequest())).message).toBe(
      "Steps reserve, charge.call_bank · revision 000001-27f",
    );

    h.cloud.succeed(id, '{"total":12}');
    expect(await adapter.read(run.ref, readRequest())).toMatchObject({
      native: "SUCCEEDED",
      status: "completed",
      output: { value: { total: 12 } },
    });
  });

  test("gives the argument as JSON, stringified once, and {} for nothing", async () => {
    h.cloud.deploy({ id: "orders", location: "us-central1", script: ({ args }) => args });
    for (const [input, seen] of [
      [{ text: '"quoted" ü' }, { text: '"quoted" ü' }],
      ["plain", "plain"],
      [null, {}],
      [{}, {}],
    ] as const) {
      const run = await start(input);
      const state = await readUntil(h.adapter(), run.ref, ended("completed"));
      expect(state.output).toEqual({ value: seen });
    }
  });

  test("refuses an argument over 32 KB before Google is asked", async () => {
    h.cloud.deploy({ id: "orders", location: "us-central1" });
    // Two bytes a letter: the limit is in bytes.
    const input = { text: "ü".repeat(16_400) };
    await expect(start(input)).rejects.toMatchObject({
      verdict: { kind: "rejected", code: "ARGUMENT_TOO_LARGE" },
    });
    expect(h.cloud.count("createExecution")).toBe(0);
    await expect(start({ text: "x".repeat(32_700) })).resolves.toHaveProperty("ref");
  });

  test("gives a result that is not JSON as text", async () => {
    h.cloud.deploy({ id: "orders", location: "us-central1" });
    const run = await start({});
    h.cloud.succeed(String(run.ref).split("/").at(-1) ?? "", "not json");
    expect((await h.adapter().read(run.ref, readRequest())).output).toEqual({ text: "not json" });
  });

  test("tells how a workflow failed, with payload and stack trace", async () => {
    const payload = { message: "HTTP server responded with error code 404", tags: ["HttpError"], code: 404 };
    h.cloud.deploy({
      id: "orders",
      location: "us-central1",
      script() {
        throw new WorkflowFailure({
          payload: JSON.stringify(payload),
          context: 'in step "call_api"',
          stackTrace: { elements: [{ step: "call_api", routine: "main", position: { line: "12" } }] },
        });
      },
    });
    const run = await start({});
    const state = await readUntil(h.adapter(), run.ref, ended("completed"));
    expect(state.native).toBe("FAILED");
    expect(state.output).toBeUndefined();
    expect(state.failure).toEqual({
      code: "HttpError",
      message: payload.message,
      text: `${payload.message}\n\nin step "call_api", routine "main", line 12`,
      value: {
        payload,
        stackTrace: ['in step "call_api", routine "main", line 12'],
        workflowRevisionId: "000001-27f",
      },
    });
    expect(JSON.stringify(state)).not.toMatch(/stopped/i);
  });

  test("keeps the last status at a state that it does not know", async () => {
    h.cloud.deploy({ id: "orders", location: "us-central1" });
    const run = await start({});
    const id = String(run.ref).split("/").at(-1) ?? "";
    // Over gRPC a new state is a number, over REST a word, which the generated client turns into STATE_UNSPECIFIED.
    h.cloud.update(id, { state: transport === "gRPC" ? 42 : "PAUSED" });
    const state = await h.adapter().read(run.ref, readRequest());
    expect(state.status).toBe("unchanged");
    expect(state.native).toBe(transport === "gRPC" ? "STATE_42" : "STATE_UNSPECIFIED");
  });

  test("names executions by the configured project and links the console", async () => {
    h.cloud.deploy({ id: "orders", location: "us-central1" });
    const run = await start({});
    expect(run.ref).toMatch(
      /^projects\/demo-project\/locations\/us-central1\/workflows\/orders\/executions\/[0-9a-f-]{36}$/,
    );
    const id = String(run.ref).split("/").at(-1);
    expect(run.url).toBe(
      `https://console.cloud.google.com/workflows/workflow/us-central1/orders/execution/${id}/summary?project=demo-project`,
    );
  });

  test("sends labels and the call log level", async () => {
    h.cloud.deploy({ id: "orders", location: "us-central1" });
    const adapter = h.adapter({ labels: { team: "shop" }, callLogLevel: "LOG_ERRORS_ONLY" });
    const key = newKey();
    await adapter.start({ key, input: {}, retry: false, signal: signal() });
    const [execution] = h.cloud.executions.values();
    expect(execution?.labels).toEqual({ team: "shop", "taskferry-id": key });
    expect(execution?.callLogLevel).toBe("LOG_ERRORS_ONLY");
  });

  test("refuses instead of queueing when told so, and says that trying later helps", async () => {
    h.cloud.deploy({ id: "orders", location: "us-central1" });
    h.cloud.slots = 0;
    const adapter = h.adapter({ concurrencyOverflow: "reject" });
    const error = await adapter
      .start({ key: newKey(), input: {}, retry: false, signal: signal() })
      .catch((e: unknown) => e);
    expect(adapter.explain?.(error)).toMatchObject({ kind: "retry", code: "RESOURCE_EXHAUSTED" });
    h.cloud.slots = 1;
    const key = newKey();
    await adapter.start({ key, input: { a: 1 }, retry: true, signal: signal() });
    const [execution] = h.cloud.executions.values();
    expect(execution).toMatchObject({
      argument: '{"a":1}',
      labels: { "taskferry-id": key },
      disableOverflow: true,
    });
  });
});
