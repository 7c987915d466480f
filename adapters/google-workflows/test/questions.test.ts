import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type CloudCallback, CloudFault, type Script, WorkflowFailure } from "../emulator/src/cloud.js";
import type { GoogleWorkflowsOptions } from "../src/index.js";
import {
  type Harness,
  harness,
  LOCATION,
  newKey,
  readRequest,
  readUntil,
  signal,
  TRANSPORTS,
} from "./harness.js";

const SCHEMA = { type: "object", properties: { amount: { type: "integer" } }, required: ["amount"] };

/** What the workflow puts into the list for its callers: a payload that no step waits for. */
function note(
  endpoint: CloudCallback,
  waitedFor: CloudCallback,
  fields: Record<string, unknown>,
  wrapped = false,
): void {
  const body = { taskferry: { callback: `https://attacker.example/callbacks/${waitedFor.id}`, ...fields } };
  endpoint.payloads.push(JSON.stringify(wrapped ? { http_request: { body: JSON.stringify(body) } } : body));
}

describe.each(TRANSPORTS)("questions over %s", (transport) => {
  let h: Harness;
  beforeEach(async () => {
    h = await harness(transport);
  });
  afterEach(() => h.close());

  const run = async (script: Script, options: Partial<GoogleWorkflowsOptions> = {}) => {
    h.cloud.deploy({ id: "orders", location: LOCATION, script });
    const adapter = h.adapter({ questions: true, ...options });
    const { ref } = await adapter.start({ key: newKey(), input: {}, retry: false, signal: signal() });
    const read = () => adapter.read(ref, readRequest());
    const asked = () => readUntil(adapter, ref, ({ status }) => status === "input_required");
    const done = () => readUntil(adapter, ref, ({ status }) => status === "completed");
    const answer = (key: string, content?: Record<string, number | string>) =>
      adapter.answer?.(ref, key, { action: "accept", ...(content && { content }) }, { signal: signal() });
    return { adapter, ref, read, asked, done, answer };
  };

  const approval: Script = async ({ step, endpoint, waitFor }) => {
    step("wait_for_approval");
    return waitFor(endpoint());
  };

  test("a callback that is waited for is asked, and answered with its method and a bearer token", async () => {
    const { asked, answer, done } = await run(approval);
    const state = await asked();
    expect(state.questions).toEqual([
      {
        key: [...(h.cloud.executions.values().next().value?.callbacks.keys() ?? [])][0],
        message: "The workflow waits at step wait_for_approval to be told to go on (POST callback).",
      },
    ]);
    await answer(state.questions?.[0]?.key ?? "", { amount: 5 });
    expect((await done()).output).toEqual({ value: { action: "accept", content: { amount: 5 } } });
    const sent = h.cloud.calls.find(({ operation }) => operation === "sendCallback");
    expect(sent?.authorization).toBe("Bearer test-token");
  });

  test("asks in the words of the configuration for the step that waits", async () => {
    const steps = {
      wait_for_approval: { message: "Approve?", schema: SCHEMA },
      "*": { message: "Something else?" },
    };
    const { asked } = await run(approval, { questions: { steps } });
    expect((await asked()).questions?.[0]).toMatchObject({ message: "Approve?", schema: SCHEMA });
  });

  test("asks in the workflow's own words, never calling an address that they name", async () => {
    const { asked, answer, done } = await run(async ({ endpoint, waitFor }) => {
      const [waited, board] = [endpoint("PUT"), endpoint()];
      note(board, waited, { message: "Which amount?", schema: SCHEMA });
      return waitFor(waited);
    });
    const { questions } = await asked();
    expect(questions).toHaveLength(1);
    expect(questions?.[0]).toMatchObject({ message: "Which amount?", schema: SCHEMA });
    await answer(questions?.[0]?.key ?? "", { amount: 7 });
    expect((await done()).output?.value).toEqual({ action: "accept", content: { amount: 7 } });
  });

  test("reads words that are wrapped in the request which carried them, and sends clients to a page", async () => {
    const { asked } = await run(async ({ endpoint, waitFor }) => {
      const [waited, board] = [endpoint(), endpoint()];
      note(board, waited, { message: "Sign here", url: "https://sign.example/42" }, true);
      return waitFor(waited);
    });
    expect((await asked()).questions?.[0]).toMatchObject({ kind: "url", url: "https://sign.example/42" });
  });

  test.each([
    '{"taskferry":{"callback":"%E0%A4%A","message":"x"}}',
    '{"taskferry":{"callback":1}}',
    '{"taskferry":[]}',
    "not json",
    "null",
  ])("a payload of %s is no note and does no harm", async (payload) => {
    const { asked } = await run(async ({ endpoint, waitFor }) => {
      endpoint().payloads.push(payload);
      return waitFor(endpoint());
    });
    expect((await asked()).questions?.[0]?.message).toMatch(/^The workflow waits to be told/);
  });

  test("an endpoint that is waited for again with another note is another question", async () => {
    const { asked, answer, done, adapter, ref } = await run(async ({ endpoint, waitFor }) => {
      const [waited, board] = [endpoint(), endpoint()];
      note(board, waited, { message: "First?", id: 1 });
      const first = await waitFor(waited);
      note(board, waited, { message: "Second?", id: 2 });
      return [first, await waitFor(waited)];
    });
    const first = (await asked()).questions?.[0];
    await answer(first?.key ?? "");
    const isSecond = ({ questions }: { questions?: readonly { message: string }[] }) =>
      questions?.[0]?.message === "Second?";
    const second = (await readUntil(adapter, ref, isSecond)).questions?.[0];
    expect(second?.key).not.toBe(first?.key);
    await answer(second?.key ?? "");
    expect((await done()).output?.value).toEqual([{ action: "accept" }, { action: "accept" }]);
  });

  test("parallel branches ask side by side, each answered alone", async () => {
    const steps = { a: { message: "A?" }, b: { message: "B?" } };
    const { asked, answer, done, read } = await run(
      async ({ step, endpoint, waitFor }) => {
        step("a", "b");
        return Promise.all([waitFor(endpoint()), waitFor(endpoint("GET"))]);
      },
      { questions: { steps } },
    );
    const { questions } = await asked();
    // Nothing says which step waits for which endpoint, so no step's words are guessed.
    expect(questions?.map(({ message }) => message)).toEqual([
      "The workflow waits at steps a, b to be told to go on (POST callback).",
      "The workflow waits at steps a, b to be told to go on (GET callback).",
    ]);
    await answer(questions?.[1]?.key ?? "", { amount: 2 });
    expect((await read()).questions).toHaveLength(1);
    await answer(questions?.[0]?.key ?? "");
    // A GET carries no body: the fields are in the query.
    expect((await done()).output?.value).toEqual([{ action: "accept" }, { action: "accept", amount: "2" }]);
  });

  test.each([
    ["content", { amount: 3 }],
    [({ content }: { content?: object }) => ({ form: { ...content } }), { form: { amount: 3 } }],
  ] as const)("sends what an older workflow expects (%s)", async (payload, received) => {
    const { asked, answer, done } = await run(approval, { questions: { payload } });
    await answer((await asked()).questions?.[0]?.key ?? "", { amount: 3 });
    expect((await done()).output?.value).toEqual(received);
  });

  test("a refusal reaches the workflow", async () => {
    const { adapter, ref, asked, done } = await run(approval, { questions: { payload: "content" } });
    const key = (await asked()).questions?.[0]?.key ?? "";
    await adapter.answer?.(ref, key, { action: "decline" }, { signal: signal() });
    expect((await done()).output?.value).toEqual({ action: "decline" });
  });

  test("an endpoint answered elsewhere is gone, and the run goes on", async () => {
    let release: (value: unknown) => void = () => {};
    const { asked, answer, read } = await run(async ({ step, endpoint, waitFor }) => {
      const first = await waitFor(endpoint());
      step("ship");
      await new Promise((resolve) => {
        release = resolve;
      });
      return first;
    });
    const key = (await asked()).questions?.[0]?.key ?? "";
    const [execution] = h.cloud.executions.values();
    h.cloud.send(execution?.id ?? "", key, "POST", '"by curl"');
    await h.cloud.until(() => execution?.steps[0]?.step === "ship");
    expect(await read()).toMatchObject({ status: "working", message: "Step ship · revision 000001-27f" });
    await expect(answer(key)).rejects.toMatchObject({ verdict: { kind: "gone" } });
    release(undefined);
  });

  test("an endpoint whose wait has timed out is gone", async () => {
    let timeOut: (value: unknown) => void = () => {};
    const timedOut = new Promise((resolve) => {
      timeOut = resolve;
    });
    const { asked, answer, done } = await run(({ endpoint, waitFor }) => waitFor(endpoint(), timedOut));
    const key = (await asked()).questions?.[0]?.key ?? "";
    timeOut(undefined);
    expect((await done()).failure).toMatchObject({ code: "TimeoutError" });
    await expect(answer(key)).rejects.toMatchObject({ verdict: { kind: "gone" } });
  });

  test("an answer whose response is lost is not delivered twice", async () => {
    const { adapter, asked, answer, done } = await run(approval);
    const key = (await asked()).questions?.[0]?.key ?? "";
    h.cloud.inject("sendCallback", { kind: "loseAnswer" });
    const error = await Promise.resolve(answer(key, { amount: 1 })).catch((e: unknown) => e);
    expect(adapter.explain?.(error)?.kind ?? "ambiguous").toBe("ambiguous");
    await done();
    await expect(answer(key, { amount: 1 })).rejects.toMatchObject({ verdict: { kind: "gone" } });
    expect(h.cloud.count("sendCallback")).toBe(1);
  });

  test("an account that may not list callbacks still hears that the run goes on, and how it ends", async () => {
    const { read, asked, done } = await run(approval);
    const key = (await asked()).questions?.[0]?.key ?? "";
    const refusal = new CloudFault("PERMISSION_DENIED", "workflows.callbacks.list");
    h.cloud.inject("listCallbacks", { kind: "refuse", fault: refusal });
    const state = await read();
    expect(state.status).toBe("working");
    expect(state.questions).toBeUndefined();
    expect(state.message).toContain("its callbacks cannot be listed (PERMISSION_DENIED)");
    h.cloud.send([...h.cloud.executions.keys()][0] ?? "", key, "POST", "1");
    expect((await done()).output?.value).toBe(1);
  });

  test("a list that fails for a moment is read again, not taken for 'no questions'", async () => {
    const { adapter, read, asked } = await run(approval);
    await asked();
    h.cloud.inject("listCallbacks", { kind: "refuse", fault: new CloudFault("UNAVAILABLE", "down") });
    const error = await read().catch((e: unknown) => e);
    expect(adapter.explain?.(error)).toMatchObject({ kind: "ambiguous", code: "UNAVAILABLE" });
    expect((await read()).status).toBe("input_required");
  });

  test("every page of the list is read", async () => {
    const { asked } = await run(async ({ endpoint, waitFor }) => {
      const all = Array.from({ length: 130 }, () => endpoint());
      return waitFor(all.at(-1) as CloudCallback);
    });
    expect((await asked()).questions).toHaveLength(1);
  });

  test("without the option a waiting workflow is just working, and nothing is listed", async () => {
    const { adapter, read } = await run(approval, { questions: false });
    await h.cloud.until(() => [...h.cloud.executions.values()].some(({ steps }) => steps.length > 0));
    expect(await read()).toMatchObject({
      status: "working",
      message: "Step wait_for_approval · revision 000001-27f",
    });
    expect(adapter.answer).toBeUndefined();
    expect(h.cloud.count("listCallbacks")).toBe(0);
  });

  test("questions end with the run", async () => {
    const { asked, done } = await run(async ({ endpoint, waitFor }) => {
      void waitFor(endpoint());
      await waitFor(endpoint());
      throw new WorkflowFailure({ payload: '"no"' });
    });
    const { questions } = await asked();
    const [execution] = h.cloud.executions.values();
    await h.cloud.until(() =>
      [...(execution?.callbacks.values() ?? [])].every(({ waiters }) => waiters === 1),
    );
    h.cloud.send(execution?.id ?? "", [...(execution?.callbacks.keys() ?? [])][1] ?? "", "POST", "{}");
    expect(questions?.length).toBeGreaterThan(0);
    expect((await done()).questions).toBeUndefined();
  });
});
