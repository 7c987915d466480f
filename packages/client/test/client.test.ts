/** The requestor against a real server, in every generation. */

import { createTaskEngine, defineWorkflow, serveHttp } from "@taskferry/core";
import { sqliteStore } from "@taskferry/core/sqlite";
import { asyncFunction } from "@taskferry/function";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { type Answered, type AskedQuestion, connect, type Generation } from "../src/index.js";

const GENERATIONS: readonly Generation[] = ["draft", "2025-11-25", "2026-07-28"];

async function served() {
  const forever = (_input: unknown, { signal }: { signal: AbortSignal }) =>
    new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  const engine = await createTaskEngine({
    store: await sqliteStore({ path: ":memory:" }),
    workflows: [
      defineWorkflow({
        name: "double",
        input: z.object({ value: z.number() }),
        pollMs: 20,
        adapter: asyncFunction(async ({ value }: { value: number }) => ({ doubled: value * 2 })),
      }),
      defineWorkflow({
        name: "greet",
        pollMs: 20,
        adapter: asyncFunction(async (_input, { ask }) => {
          const answer = await ask<{ name: string }>({
            message: "Who?",
            schema: z.object({ name: z.string() }),
          });
          return answer.action === "accept" ? `Hello, ${answer.content.name}` : "Nobody";
        }),
      }),
      defineWorkflow({
        name: "sink",
        pollMs: 20,
        adapter: asyncFunction(async () => {
          throw new Error("There is a hole in the hull");
        }),
      }),
      defineWorkflow({ name: "forever", pollMs: 20, adapter: asyncFunction(forever) }),
      defineWorkflow({
        name: "plain",
        pollMs: 20,
        task: "forbidden",
        adapter: asyncFunction(async () => "done"),
      }),
    ],
  });
  const server = await serveHttp(engine, { name: "test", version: "0" });
  onTestFinished(async () => {
    await server.close();
    await engine.close();
  });
  return server.url;
}

async function connected(
  url: string,
  generation: Generation,
  answer?: (question: AskedQuestion) => Answered,
) {
  const client = await connect(url, { generation, ...(answer && { answer }) });
  onTestFinished(() => client.close());
  return client;
}

describe.each(GENERATIONS)("%s", (generation) => {
  test("a task is started, watched, and ends with its result", async () => {
    const client = await connected(await served(), generation);
    expect(client.generation).toBe(generation);
    const task = await client.start("double", { value: 21 });
    const seen: string[] = [];
    const ending = await task.end({ onStatus: ({ status }) => seen.push(status) });
    expect(ending).toMatchObject({ status: "completed", result: { structuredContent: { doubled: 42 } } });
    expect(seen.at(-1)).toBe("completed");
  });

  test("a later session resumes it with its handle", async () => {
    const url = await served();
    const first = await connect(url, { generation });
    const { handle, taskId } = await first.start("double", { value: 2 });
    await first.close();
    const second = await connected(url, generation);
    const task = await second.resume(handle);
    expect(task.taskId).toBe(taskId);
    expect((await task.end()).result).toMatchObject({ structuredContent: { doubled: 4 } });
  });

  test("questions are answered on the way", async () => {
    const asked: string[] = [];
    const client = await connected(await served(), generation, ({ message }) => {
      asked.push(message);
      return { action: "accept", content: { name: "Ada" } };
    });
    const ending = await (await client.start("greet")).end();
    expect(JSON.stringify(ending.result)).toContain("Hello, Ada");
    expect(asked).toEqual(["Who?"]);
  });

  test("an answer that throws leaves the session alive", async () => {
    let asked = () => {};
    const wasAsked = new Promise<void>((resolve) => {
      asked = resolve;
    });
    const client = await connected(await served(), generation, () => {
      asked();
      throw new Error("Nobody is here");
    });
    const task = await client.start("greet");
    task.end().catch(() => {});
    await wasAsked;
    expect(["input_required", "working", "failed"]).toContain((await task.status()).status);
  });

  test("work that fails ends with the answer that says why", async () => {
    const client = await connected(await served(), generation);
    const { status, result } = await (await client.start("sink")).end();
    expect(status).toBe("completed");
    expect(result?.isError).toBe(true);
    expect(JSON.stringify(result?.content)).toContain("There is a hole in the hull");
  });

  test("a cancelled task ends as cancelled", async () => {
    const client = await connected(await served(), generation);
    const task = await client.start("forever");
    await task.cancel();
    expect(await task.end()).toMatchObject({ status: "cancelled" });
  });

  test("the same idempotency key is the same task", async () => {
    const url = await served();
    const client = await connected(url, generation);
    const options = { idempotencyKey: "once", ...(generation === "draft" && { taskId: "once" }) };
    const first = await client.start("forever", {}, options);
    // The retry of a client that has lost its connection comes in a session of its own.
    const retry = await connected(url, generation);
    const again = await retry.start("forever", {}, options).catch((error: Error) => error);
    // The draft says of its own id that it is taken, which tells a retry the same.
    if (again instanceof Error) expect(again.message).toContain("already exists");
    else expect(again.taskId).toBe(first.taskId);
  });

  test("a tool without task support says so", async () => {
    const client = await connected(await served(), generation);
    await expect(client.start("plain")).rejects.toThrow(/task/);
  });

  test("waiting can be given up, and the task goes on", async () => {
    const client = await connected(await served(), generation);
    const task = await client.start("forever");
    const stop = new AbortController();
    const waiting = task.end({ signal: stop.signal, onStatus: () => stop.abort(new Error("enough")) });
    await expect(waiting).rejects.toThrow();
    expect(["submitted", "working"]).toContain((await task.status()).status);
  });
});

test("auto takes the newest that the server offers", async () => {
  const client = await connect(await served());
  onTestFinished(() => client.close());
  expect(client.generation).toBe("2026-07-28");
});

test("a handle of another generation, or none at all, is refused in words", async () => {
  const url = await served();
  const draft = await connected(url, "draft");
  const { handle } = await draft.start("double", { value: 1 });
  const modern = await connected(url, "2026-07-28");
  await expect(modern.resume(handle)).rejects.toThrow(/generation draft/);
  await expect(modern.resume("nonsense")).rejects.toThrow(/no handle/);
});

test("a server that is not there is told as such", async () => {
  for (const generation of GENERATIONS)
    await expect(connect("http://127.0.0.1:1/mcp", { generation })).rejects.toThrow();
});
