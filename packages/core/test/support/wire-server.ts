/** One server for a whole file of tests of the wire: every test makes its own task and its own client. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { asyncFunction } from "@taskferry/function";
import { afterAll, beforeAll } from "vitest";
import { z } from "zod";
import { LOCAL_OWNER } from "../../src/contract/owner.js";
import type { Generation } from "../../src/contract/task.js";
import {
  createTaskEngine,
  defineWorkflow,
  type HttpServer,
  type RunState,
  serveHttp,
  type TaskEngine,
  type WorkflowAdapter,
} from "../../src/index.js";
import { sqliteStore } from "../../src/store/sqlite.js";
import { ASKING, QUEUED, RUNNING } from "./scripted-engine.js";

/** What a run of the workflow `states` says of itself, by its argument. */
export const STATES = {
  submitted: QUEUED,
  working: RUNNING,
  input_required: ASKING,
  completed: { native: "DONE", status: "completed", output: { value: { n: 1 } } },
  isError: { native: "FAILED", status: "completed", failure: { code: "Boom", message: "it broke" } },
  failed: { native: "DENIED", status: "failed", failure: { code: "Denied", message: "not yours" } },
  cancelled: { native: "STOPPED", status: "cancelled" },
  unknown: { native: "LOST", status: "unknown" },
} as const satisfies Record<string, RunState>;

export type StateName = keyof typeof STATES;

/** The run is named after what it says, so that nothing is shared between tests. */
const states: WorkflowAdapter = {
  engine: "states",
  startsOnce: true,
  start: async ({ key, input }) => ({ ref: { key, ...(input as { state: StateName }) } }),
  read: async (ref) => STATES[(ref as { state: StateName }).state],
  stop: async () => {},
  answer: async () => {},
};

export const RETENTION = { defaultMs: 60_000, maxMs: 600_000 };

export interface WireServer {
  readonly url: string;
  readonly engine: TaskEngine;
  /** Makes a task in a generation, whose run says this, and lets it be read once. @returns its id */
  task(generation: Generation, state: StateName, retentionMs?: number): Promise<string>;
}

/** @returns what is there once the tests run */
export function wireServer(): WireServer {
  let dir: string;
  let engine: TaskEngine;
  let server: HttpServer;
  let made = 0;

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), "taskferry-wire-"));
    engine = await createTaskEngine({
      store: await sqliteStore({ path: join(dir, "tasks.db") }),
      retention: RETENTION,
      limits: { createPerMinute: 100_000, concurrentTasks: 100_000 },
      workflows: [
        defineWorkflow({
          name: "states",
          pollMs: 10,
          input: z.object({ state: z.enum(Object.keys(STATES) as [StateName]) }),
          adapter: states,
        }),
        defineWorkflow({ name: "plain", pollMs: 10, adapter: asyncFunction(async () => ({ n: 1 })) }),
        defineWorkflow({
          name: "forbidden",
          pollMs: 10,
          task: "forbidden",
          adapter: asyncFunction(async () => ({ n: 1 })),
        }),
        defineWorkflow({
          name: "required",
          pollMs: 10,
          task: "required",
          adapter: asyncFunction(async () => ({ n: 1 })),
        }),
        defineWorkflow({
          name: "summary",
          pollMs: 10,
          as: { kind: "prompt" },
          adapter: asyncFunction(async () => "Summarize this."),
        }),
        defineWorkflow({
          name: "report",
          pollMs: 10,
          as: { kind: "resource", uri: "report://today", mimeType: "text/plain" },
          adapter: asyncFunction(async () => "All is well."),
        }),
      ],
    });
    server = await serveHttp(engine, { name: "wire", version: "0" });
  });

  afterAll(async () => {
    await server.close();
    await engine.close();
    await rm(dir, { recursive: true, force: true });
  });

  return {
    get url() {
      return server.url;
    },
    get engine() {
      return engine;
    },
    async task(generation, state, retentionMs) {
      const { task } = await engine.create({
        owner: LOCAL_OWNER,
        generation,
        workflow: "states",
        arguments: { state },
        ...(generation === "draft" && { taskId: `draft-${++made}` }),
        ...(retentionMs !== undefined && { retentionMs }),
      });
      await engine.get(LOCAL_OWNER, task.taskId);
      return task.taskId;
    },
  };
}
