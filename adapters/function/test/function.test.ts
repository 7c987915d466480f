import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { type ErrorVerdict, isEngineError, type RunState, type WorkflowAdapter } from "@taskferry/core";
import { describe, expect, it, vi } from "vitest";
import { z } from "zod";
import {
  asyncFunction,
  CallRefused,
  FunctionRuns,
  type FunctionState,
  RUN_STATUS,
  type WorkflowFunction,
} from "../src/index.js";

const { signal } = new AbortController();
const stopRequest = { signal, stopsSent: 0, requestedAgoMs: 0 };
const readRequest = { key: "k", ageMs: 0, signal, isClaimed: async () => false };

async function started<Input>(fn: WorkflowFunction<Input>, input: unknown = null) {
  const adapter = asyncFunction(fn, { runs: new FunctionRuns() });
  const { ref } = await adapter.start({ key: "k", input: input as null, retry: false, signal });
  const read = () => adapter.read(ref, readRequest);
  return { adapter, ref, read, until: (status: string) => until(read, status) };
}

async function until(read: () => Promise<RunState>, status: string): Promise<RunState> {
  return vi.waitFor(async () => {
    const state = await read();
    expect(state.status).toBe(status);
    return state;
  });
}

async function verdictOf(call: Promise<unknown>): Promise<ErrorVerdict> {
  const error: unknown = await call.then(
    () => expect.fail("must throw"),
    (thrown: unknown) => thrown,
  );
  return isEngineError(error) ? error.verdict : expect.fail(String(error));
}

describe("status", () => {
  it("has a canonical status for every word", () => {
    const table: Record<FunctionState, string> = {
      running: "working",
      asking: "input_required",
      returned: "completed",
      threw: "completed",
      refused: "failed",
      aborted: "cancelled",
      lost: "failed",
    };
    expect(RUN_STATUS).toEqual(table);
  });
});

describe("the end of a function", () => {
  it("is completed with what it returned, as JSON", async () => {
    const run = await started(
      async ({ n }: { n: number }) => ({ n: n + 1, when: new Date(0), gone: undefined }),
      {
        n: 1,
      },
    );
    const state = await run.until("completed");
    expect(state).toEqual({
      native: "returned",
      status: "completed",
      output: { value: { n: 2, when: "1970-01-01T00:00:00.000Z" } },
    });
  });

  it("is an empty output when it returns nothing", async () => {
    expect((await (await started(() => {})).until("completed")).output).toEqual({});
  });

  it("is completed with the failure when it throws, without the stack", async () => {
    const run = await started(() => {
      throw new RangeError("too far");
    });
    const state = await run.until("completed");
    expect(state).toEqual({
      native: "threw",
      status: "completed",
      failure: { code: "RangeError", message: "too far" },
    });
  });

  it("is a failure when what it returns is not JSON", async () => {
    const state = await (await started(() => ({ n: 1n }))).until("completed");
    expect(state.failure?.code).toBe("TypeError");
    expect(state.output).toBeUndefined();
  });

  it("is failed when the function refuses the call", async () => {
    const run = await started(() => {
      throw new CallRefused("no such city");
    });
    expect((await run.until("failed")).failure).toEqual({ code: "CallRefused", message: "no such city" });
  });
});

describe("start", () => {
  it("runs a function once for a key, also when asked twice at the same time", async () => {
    const fn = vi.fn(async () => "done");
    const adapter = asyncFunction(fn, { runs: new FunctionRuns() });
    const request = { key: "k", input: null, retry: false, signal };
    const [first, second] = await Promise.all([adapter.start(request), adapter.start(request)]);
    const third = await adapter.start({ ...request, retry: true });
    expect([second.ref, third.ref]).toEqual([first.ref, first.ref]);
    expect(fn).toHaveBeenCalledTimes(1);
  });

  it("refuses to run again what an earlier process may have run", async () => {
    const fn = vi.fn();
    const adapter = asyncFunction(fn, { runs: new FunctionRuns() });
    const verdict = await verdictOf(adapter.start({ key: "k", input: null, retry: true, signal }));
    expect(verdict).toMatchObject({ kind: "rejected", code: "ProcessEnded" });
    expect(fn).not.toHaveBeenCalled();
  });

  it("gives the function an input of its own", async () => {
    const input = { list: [1] };
    const run = await started(({ list }: { list: number[] }) => list.push(2), input);
    await run.until("completed");
    expect(input).toEqual({ list: [1] });
  });
});

describe("stop", () => {
  it("cancels a function that ends with the abort", async () => {
    const run = await started((_input, context) => delay(1e6, null, { signal: context.signal }));
    await run.adapter.stop?.(run.ref, stopRequest);
    expect(await run.until("cancelled")).toEqual({ native: "aborted", status: "cancelled" });
    await run.adapter.stop?.(run.ref, stopRequest);
  });

  it("cancels a function that waits for an answer", async () => {
    const run = await started((_input, { ask }) => ask({ message: "Go?" }));
    await run.until("input_required");
    await run.adapter.stop?.(run.ref, stopRequest);
    expect((await run.until("cancelled")).questions).toBeUndefined();
  });

  it("reports the true result of a function that does not listen", async () => {
    let finish = (_value: string) => {};
    const run = await started(() => new Promise<string>((resolve) => (finish = resolve)));
    await run.adapter.stop?.(run.ref, stopRequest);
    expect((await run.read()).status).toBe("working");
    finish("too late to stop");
    expect((await run.until("completed")).output).toEqual({ value: "too late to stop" });
  });

  it("reports another error after a stop as that error", async () => {
    const run = await started(async (_input, context) => {
      await once(context.signal, "abort");
      throw new Error("disk full");
    });
    await run.adapter.stop?.(run.ref, stopRequest);
    expect((await run.until("completed")).failure).toEqual({ code: "Error", message: "disk full" });
  });
});

describe("ask", () => {
  const schema = z.object({ seats: z.number().int().min(1) });

  it("turns a Zod form into a flat JSON Schema and the answer into its type", async () => {
    const run = await started(async (_input, { ask }) => {
      const answer = await ask({ message: "How many?", schema });
      return answer.action === "accept" ? answer.content.seats * 2 : answer.action;
    });
    const [question] = (await run.until("input_required")).questions ?? [];
    expect(question).toMatchObject({
      message: "How many?",
      schema: { type: "object", properties: { seats: { type: "integer", minimum: 1 } }, required: ["seats"] },
    });
    expect(question?.schema).not.toHaveProperty("$schema");
    const key = question?.key ?? "";

    const wrong = run.adapter.answer?.(run.ref, key, { action: "accept", content: { seats: 0 } }, { signal });
    expect(await verdictOf(wrong ?? Promise.resolve())).toMatchObject({
      kind: "rejected",
      code: "InvalidAnswer",
    });
    expect((await run.read()).status).toBe("input_required");

    await run.adapter.answer?.(run.ref, key, { action: "accept", content: { seats: 2 } }, { signal });
    expect((await run.until("completed")).output).toEqual({ value: 4 });
  });

  it("takes one answer of two", async () => {
    const run = await started((_input, { ask }) => ask({ message: "Who?", schema }));
    const key = (await run.until("input_required")).questions?.[0]?.key ?? "";
    const answers = await Promise.allSettled(
      [1, 2].map((seats) =>
        run.adapter.answer?.(run.ref, key, { action: "accept", content: { seats } }, { signal }),
      ),
    );
    expect(answers.map((answer) => answer.status).sort()).toEqual(["fulfilled", "rejected"]);
  });

  it("tells the function of a declined question, and asks the next one under a new key", async () => {
    const run = await started(async (_input, { ask }) => {
      const first = await ask({ message: "Again?" });
      const second = await ask({ message: "Again?" });
      return [first.action, second.action];
    });
    const first = (await run.until("input_required")).questions?.[0]?.key ?? "";
    await run.adapter.answer?.(run.ref, first, { action: "decline" }, { signal });
    const second = await vi.waitFor(async () => {
      const key = (await run.read()).questions?.[0]?.key;
      expect(key).not.toBe(first);
      return key ?? expect.fail("must ask");
    });
    await run.adapter.answer?.(run.ref, second, { action: "accept" }, { signal });
    expect((await run.until("completed")).output).toEqual({ value: ["decline", "accept"] });
  });

  it("keeps asking while one of two questions is open", async () => {
    const run = await started((_input, { ask }) =>
      Promise.all([ask({ message: "A?" }), ask({ message: "B?" })]),
    );
    const [a] = (await run.until("input_required")).questions ?? [];
    await run.adapter.answer?.(run.ref, a?.key ?? "", { action: "accept" }, { signal });
    expect((await run.read()).questions?.map((question) => question.message)).toEqual(["B?"]);
  });
});

describe("progress and logs", () => {
  it("tells the last progress", async () => {
    const run = await started(async (_input, { progress, ask }) => {
      progress(1, 3, "Packing");
      progress(2, 3);
      await ask({ message: "Go on?" });
    });
    expect(await run.until("input_required")).toMatchObject({
      progress: { done: 2, total: 3 },
      message: "Packing",
    });
  });

  it("pages the log, and drops its beginning rather than the memory", async () => {
    const run = await started(async (_input, { log, ask }) => {
      log("first");
      await ask({ message: "More?" });
      for (let line = 0; line < 3000; line++) log("x".repeat(200));
      log("last");
    });
    const { questions } = await run.until("input_required");
    const logs = async (cursor?: string) =>
      (await run.adapter.logs?.(run.ref, cursor, { signal })) ?? expect.fail();
    const page = await logs();
    expect(page.text).toBe("first\n");
    expect((await logs(page.cursor)).text).toBe("");
    await run.adapter.answer?.(run.ref, questions?.[0]?.key ?? "", { action: "accept" }, { signal });
    await run.until("completed");
    const rest = await logs(page.cursor);
    expect(rest.cursor).toBeUndefined();
    expect(rest.text).toMatch(/last\n$/);
    expect(rest.text.length).toBeGreaterThanOrEqual(256 * 1024);
    expect(rest.text.length).toBeLessThanOrEqual(512 * 1024);
  });
});

describe("a run of another process", () => {
  const readAs = (adapter: WorkflowAdapter, ref: unknown) =>
    adapter.read(JSON.parse(JSON.stringify(ref)), readRequest);

  it("is lost when that process has ended", async () => {
    const child = spawn(process.execPath, ["-e", ""]);
    await once(child, "exit");
    const adapter = asyncFunction(() => {}, { runs: new FunctionRuns() });
    const ref = { process: { pid: child.pid, began: "1", id: "x" }, key: "k" };
    expect(await readAs(adapter, ref)).toMatchObject({ status: "failed", failure: { code: "ProcessEnded" } });
    expect(await verdictOf(adapter.stop?.(ref as never, stopRequest) ?? Promise.resolve())).toMatchObject({
      kind: "gone",
    });
  });

  it("is lost when its pid is ours or another process has it now", async () => {
    const adapter = asyncFunction(() => {}, { runs: new FunctionRuns() });
    for (const pid of [process.pid, process.ppid]) {
      const ref = { process: { pid, began: "1", id: "x" }, key: "k" };
      expect((await readAs(adapter, ref)).status).toBe("failed");
    }
  });

  it("is left to that process while it lives", async () => {
    const script = `import { FunctionRuns } from ${JSON.stringify(new URL("../dist/index.js", import.meta.url).href)};
      process.stdout.write(JSON.stringify(new FunctionRuns().identity)); process.stdin.resume();`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", script]);
    try {
      const [identity] = await once(child.stdout, "data");
      const adapter = asyncFunction(() => {}, { runs: new FunctionRuns() });
      const ref = { process: JSON.parse(String(identity)), key: "k" };
      expect((await readAs(adapter, ref)).status).toBe("unchanged");
      expect(await verdictOf(adapter.stop?.(ref, stopRequest) ?? Promise.resolve())).toMatchObject({
        kind: "retry",
      });
    } finally {
      child.kill();
    }
  });
});

describe("memory", () => {
  it("forgets ended runs beyond a thousand and says that they are gone", async () => {
    const adapter = asyncFunction(() => "x", { runs: new FunctionRuns() });
    const start = (key: string) => adapter.start({ key, input: null, retry: false, signal });
    const first = await start("first");
    await until(() => adapter.read(first.ref, readRequest), "completed");
    for (let run = 0; run < 1001; run++) await start(`k${run}`);
    expect(await verdictOf(adapter.read(first.ref, readRequest))).toMatchObject({ kind: "gone" });
  });

  it("forgets a run some time after its end was told, and never one at work", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    try {
      const adapter = asyncFunction((work: string) => (work === "short" ? 1 : new Promise(() => {})), {
        runs: new FunctionRuns(),
      });
      const start = (key: string, input: string) => adapter.start({ key, input, retry: false, signal });
      const short = await start("a", "short");
      const long = await start("b", "long");
      expect((await adapter.read(short.ref, readRequest)).status).toBe("completed");
      vi.setSystemTime(Date.now() + 3_600_000);
      await start("c", "short");
      expect(await verdictOf(adapter.read(short.ref, readRequest))).toMatchObject({ kind: "gone" });
      expect((await adapter.read(long.ref, readRequest)).status).toBe("working");
    } finally {
      vi.useRealTimers();
    }
  });
});
