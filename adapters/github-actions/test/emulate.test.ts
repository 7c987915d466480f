/** The real Octokit against a GitHub that somebody else wrote: what `emulate@0.12.2` can do of it. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Octokit } from "@octokit/rest";
import { describe, expect, it, onTestFinished } from "vitest";
import { discoverWorkflows, githubActions, watchRun } from "../src/index.js";
import { EMULATOR_TOKEN, startEmulator } from "./emulator.js";
import { Claims, eventually, refusal, Task } from "./world.js";

async function emulated() {
  const emulator = await startEmulator();
  onTestFinished(() => emulator.close());
  const connection = { baseUrl: emulator.url, auth: EMULATOR_TOKEN, owner: "octo", repo: "hello" };
  const options = { ...connection, workflow: "ci.yml", ref: "main", settleMs: 100 };
  return { emulator, connection, options, adapter: githubActions(options) };
}

describe("emulate", () => {
  it("a run from dispatch to its end, in spite of a 204", async () => {
    const { emulator, adapter } = await emulated();
    const task = await new Task().start(adapter);
    await task.until(adapter, ({ ref }) => ref !== undefined);
    const { runId } = task.ref as { runId: string };
    expect(await task.read(adapter)).toMatchObject({ status: "submitted", native: "queued" });
    emulator.finish(runId, "failure");
    const end = await task.read(adapter);
    expect(end).toMatchObject({ status: "completed", failure: { code: "failure" } });
  });

  it("simultaneous dispatches get runs of their own", async () => {
    const { adapter } = await emulated();
    const claims = new Claims();
    const tasks = await Promise.all(Array.from({ length: 4 }, () => new Task(claims).start(adapter)));
    for (const task of tasks) await task.until(adapter, ({ ref }) => ref !== undefined);
    expect(new Set(tasks.map(({ ref }) => (ref as { runId: string }).runId)).size).toBe(4);
  });

  it("cancels, and hears the end", async () => {
    const { adapter } = await emulated();
    const task = await new Task().start(adapter);
    await task.until(adapter, ({ ref }) => ref !== undefined);
    await task.stop(adapter);
    await task.until(adapter, ({ status }) => status === "cancelled");
    await task.stop(adapter, 1000, 1);
  });

  it("refuses what is not there", async () => {
    const { options } = await emulated();
    const missing = githubActions({ ...options, workflow: "none.yml" });
    expect(await refusal(missing, new Task().start(missing))).toMatchObject({ code: "WorkflowNotFound" });
    const elsewhere = githubActions({ ...options, repo: "none" });
    expect((await refusal(elsewhere, new Task().start(elsewhere))).kind).toBe("rejected");
  });

  it("watches the last run of a branch, and reads a log", async () => {
    const { emulator, connection, adapter } = await emulated();
    const started = await new Task().start(adapter);
    await started.until(adapter, ({ ref }) => ref !== undefined);
    const watch = watchRun(connection);
    const task = await new Task().start(watch, { branch: "main" });
    expect(task.ref).toMatchObject({ runId: (started.ref as { runId: string }).runId });
    emulator.finish((task.ref as { runId: string }).runId, "success");
    expect(await task.read(watch)).toMatchObject({ status: "completed" });
  });

  it("sends signed webhooks that name the run", async () => {
    const { emulator, connection, options } = await emulated();
    const adapter = githubActions({ ...options, webhookSecret: "hush" });
    const refs: unknown[] = [];
    const receiver = createServer(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const headers = Object.fromEntries(
        Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
      );
      const body = Buffer.concat(chunks);
      refs.push(...(await adapter.events!({ headers, body, signal: AbortSignal.timeout(5000) })));
      response.end();
    });
    await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void receiver.close());
    const octokit = new Octokit({ baseUrl: emulator.url, auth: EMULATOR_TOKEN });
    await octokit.rest.repos.createWebhook({
      owner: connection.owner,
      repo: connection.repo,
      events: ["workflow_run"],
      config: {
        url: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`,
        content_type: "json",
        secret: "hush",
      },
    });
    const task = await new Task().start(adapter);
    await task.until(adapter, ({ ref }) => ref !== undefined);
    await eventually(async () => expect(refs).toContainEqual(task.ref));
  });

  it("describes nothing that has no file", async () => {
    const { connection } = await emulated();
    expect(await discoverWorkflows(connection)).toEqual([]);
  });
});
