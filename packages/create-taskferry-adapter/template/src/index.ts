import {
  checkOptions,
  type Json,
  type Question,
  type RunFailure,
  type RunProgress,
  type RunRef,
  type WorkflowAdapter,
} from "@taskferry/core";
import { type Connection, call, explain } from "./client.js";
import { statusOf } from "./status.js";

export { HttpError } from "./client.js";
export { RUN_STATUS } from "./status.js";

/** Options of {@link myEngine}. */
export interface MyEngineOptions {
  /** Where the engine is. @default "http://127.0.0.1:7000" */
  readonly url?: string;
  readonly token: string;
}

/** A job, as the engine tells it. */
interface Job {
  readonly id: string;
  readonly state: string;
  readonly progress?: RunProgress;
  readonly questions: readonly Question[];
  readonly value?: Json;
  readonly error?: RunFailure;
}

/** Makes the jobs of my-engine a workflow. */
export function myEngine(options: MyEngineOptions): WorkflowAdapter {
  checkOptions("myEngine", options, { url: true, token: true });
  const { url = "http://127.0.0.1:7000", token } = options;
  const engine: Connection = { url, token };

  return {
    engine: "my-engine",
    // The engine takes our key as its own idempotency key: asked twice, it starts once.
    startsOnce: true,

    async start({ key, input, signal }) {
      const { id } = await call<Job>(engine, "POST", "/jobs", signal, { key, input });
      return { ref: { id } };
    },

    async read(ref, { signal }) {
      const { state, progress, questions, value, error } = await call<Job>(engine, "GET", path(ref), signal);
      return {
        native: state,
        status: statusOf(state),
        ...(progress && { progress }),
        ...(state === "waiting" && { questions }),
        ...(state === "done" && { output: value === undefined ? {} : { value } }),
        ...(state === "failed" && error && { failure: error }),
      };
    },

    async stop(ref, { signal }) {
      await call(engine, "POST", `${path(ref)}/stop`, signal);
    },

    async answer(ref, questionKey, { action, content }, { signal }) {
      const answer = { accepted: action === "accept", ...(content && { content }) };
      await call(engine, "POST", `${path(ref)}/answers/${questionKey}`, signal, answer);
    },

    explain,
  };
}

function path(ref: RunRef): string {
  return `/jobs/${(ref as { readonly id: string }).id}`;
}
