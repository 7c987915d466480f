/** The adapter behind a whole Taskferry server: in this process, or in one that can be killed. */
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createTaskEngine, defineWorkflow, serveHttp, type WorkflowAdapter } from "@taskferry/core";
import { sqliteStore } from "@taskferry/core/sqlite";
import { expect, onTestFinished, vi } from "vitest";

/** A folder for a database. */
export async function home(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "taskferry-sfn-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}

/** Serves tools from this process, each by its adapter. @returns a client */
export async function serveHere(adapters: Readonly<Record<string, WorkflowAdapter>>): Promise<TaskClient> {
  const engine = await createTaskEngine({
    workflows: Object.entries(adapters).map(([name, adapter]) =>
      defineWorkflow({ name, adapter, input: { type: "object" }, pollMs: 20 }),
    ),
    store: await sqliteStore({ path: join(await home(), "tasks.db") }),
    timing: { tickMs: 20, startWaitMs: 500 },
  });
  const server = await serveHttp(engine, { name: "here", version: "0" });
  onTestFinished(async () => {
    await server.close();
    await engine.close();
  });
  return new TaskClient(server.url);
}

/** Serves the tool `run` from a process of its own, its tasks in `folder`. `kill` is SIGKILL. */
export async function serveProcess(
  folder: string,
  options: { readonly stateMachineArn: string; readonly endpoint: string },
): Promise<{ readonly client: TaskClient; kill(): Promise<void> }> {
  expect(existsSync(new URL("../dist/index.js", import.meta.url)), "run `tsc -b` first").toBe(true);
  const script = fileURLToPath(new URL("server-child.mjs", import.meta.url));
  const credentials = { AWS_ACCESS_KEY_ID: "test", AWS_SECRET_ACCESS_KEY: "test" };
  const child = spawn(process.execPath, [script, folder, JSON.stringify(options)], {
    env: { ...process.env, ...credentials, NODE_NO_WARNINGS: "1" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, "exit");
    child.kill("SIGKILL");
    await gone;
  };
  onTestFinished(kill);
  const [url] = await once(child.stdout, "data");
  return { client: new TaskClient(String(url).trim()), kill };
}

/** What `tasks/get` answers, as far as these tests look. */
export interface WireTask {
  readonly taskId: string;
  readonly status: string;
  readonly statusMessage?: string;
  readonly inputRequests?: Readonly<Record<string, { readonly params: { readonly message: string } }>>;
  readonly result?: {
    readonly isError?: boolean;
    readonly structuredContent?: Readonly<Record<string, unknown>>;
    readonly content: readonly { readonly text?: string }[];
  };
  readonly error?: { readonly code: number; readonly message: string };
}

interface RequestParams {
  readonly _meta?: object;
  readonly [name: string]: unknown;
}

/** 2026-07-28, message by message. The official clients play the same server in conformance.test.ts and in the example. */
export class TaskClient {
  constructor(private readonly url: string) {}

  /** Calls a tool. @returns the id of its task */
  async start(name: string, args: object, idempotencyKey?: string): Promise<string> {
    const _meta = idempotencyKey === undefined ? {} : { "taskferry.dev/idempotency-key": idempotencyKey };
    const result = await this.#request("tools/call", name, { name, arguments: args, _meta });
    expect(result).toMatchObject({ resultType: "task" });
    return (result as unknown as WireTask).taskId;
  }

  get(taskId: string): Promise<WireTask> {
    return this.#request("tasks/get", taskId, { taskId });
  }

  async answer(taskId: string, key: string, content: object | undefined): Promise<void> {
    const answer = content === undefined ? { action: "decline" } : { action: "accept", content };
    await this.#request("tasks/update", taskId, { taskId, inputResponses: { [key]: answer } });
  }

  async cancel(taskId: string): Promise<void> {
    await this.#request("tasks/cancel", taskId, { taskId });
  }

  /** Polls until the task is in one of these states, and passes the check. */
  until(
    taskId: string,
    states: string | readonly string[],
    check: (task: WireTask) => void = () => undefined,
  ): Promise<WireTask> {
    return vi.waitFor(
      async () => {
        const task = await this.get(taskId);
        expect([states].flat(), JSON.stringify(task)).toContain(task.status);
        check(task);
        return task;
      },
      { timeout: 30_000, interval: 25 },
    );
  }

  ended(taskId: string): Promise<WireTask> {
    return this.until(taskId, ["completed", "failed", "cancelled"]);
  }

  async #request(method: string, name: string, params: RequestParams): Promise<WireTask> {
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": { name: "test", version: "0" },
      "io.modelcontextprotocol/clientCapabilities": {
        elicitation: { form: {} },
        extensions: { "io.modelcontextprotocol/tasks": {} },
      },
      ...params._meta,
    };
    const response = await fetch(this.url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": method,
        "mcp-name": name,
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: randomUUID(), method, params: { ...params, _meta } }),
    });
    const text = await response.text();
    const [message = text] = text.match(/(?<=^data: ?)\{.*$/m) ?? [];
    const reply = JSON.parse(message) as { result?: WireTask; error?: { message: string } };
    if (reply.result === undefined) throw new Error(`${method}: ${reply.error?.message}`);
    return reply.result;
  }
}

export function textOf({ result }: WireTask): string {
  return (result?.content ?? []).map(({ text = "" }) => text).join("\n");
}
