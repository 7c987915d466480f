import type { Json, LogPage, RunOutput, RunRef, RunState } from "@taskferry/core";
import { isActive, type Mutant, nativeOf, rethrow, telling } from "./mutant.js";

const LINK = { uri: "/runs/1", name: "run" };

/** Faults in what is told: states, outcomes, logs, payloads. */
export const tales: readonly Mutant[] = [
  {
    fault: "a run at work is told as unchanged",
    breaks: "read.active",
    mutate: (right) =>
      telling(right, (state) => (state.status === "working" ? { ...state, status: "unchanged" } : state)),
  },
  {
    fault: "a queued run is told as working",
    breaks: "read.queued",
    mutate: (right) =>
      telling(right, (state) => (state.status === "submitted" ? { ...state, status: "working" } : state)),
  },
  {
    fault: "numbers in the output become text",
    breaks: "read.output",
    mutate: (right) =>
      telling(right, (state) =>
        withValue(state, (value) =>
          JSON.parse(
            JSON.stringify(value, (_key, inner: unknown) => (typeof inner === "number" ? `${inner}` : inner)),
          ),
        ),
      ),
  },
  {
    fault: "a run that ended badly is failed",
    breaks: "read.failure",
    mutate: (right) => telling(right, (state) => (state.failure ? { ...state, status: "failed" } : state)),
  },
  {
    fault: "a failure has no code",
    breaks: "read.failure",
    mutate: (right) =>
      telling(right, (state) =>
        state.failure ? { ...state, failure: { ...state.failure, code: "" } } : state,
      ),
  },
  {
    fault: "done and total are mixed up",
    breaks: "read.progress",
    mutate: (right) =>
      telling(right, (state) =>
        state.progress
          ? { ...state, progress: { done: state.progress.total ?? 0, total: state.progress.done } }
          : state,
      ),
  },
  {
    fault: "a second read at the same time is refused",
    breaks: "read.repeatable",
    mutate: (right) => {
      let isBusy = false;
      return {
        read: async (ref, request) => {
          if (isBusy) throw new Error("busy");
          isBusy = true;
          try {
            return await right.read(ref, request);
          } finally {
            isBusy = false;
          }
        },
      };
    },
  },
  {
    fault: "the links of an output are a Set",
    breaks: "read.json",
    mutate: (right) =>
      telling(right, (state) =>
        state.output ? { ...state, output: { ...state.output, links: new Set() as unknown as [] } } : state,
      ),
  },
  {
    fault: "the time to the next read is negative",
    breaks: "read.well-formed",
    mutate: (right) => telling(right, (state) => ({ ...state, nextReadMs: -1 })),
  },
  {
    fault: "a link is relative",
    breaks: "read.well-formed",
    mutate: (right) =>
      telling(right, (state) =>
        state.output ? { ...state, output: { ...state.output, links: [LINK] } } : state,
      ),
  },
  {
    fault: "a run at work has a failure",
    breaks: "read.well-formed",
    mutate: (right) =>
      telling(right, (state) =>
        state.status === "working" ? { ...state, failure: { code: "None", message: "None" } } : state,
      ),
  },
  {
    fault: "a deleted run is told as completed",
    breaks: "read.vanished",
    mutate: (right, engine) => ({
      read: async (ref, request) =>
        isDeleted(ref, (id) => nativeOf(engine, id) === undefined)
          ? { native: "GONE", status: "completed", output: {} }
          : right.read(ref, request),
    }),
  },
  {
    fault: "a deleted run is an error without a meaning",
    breaks: "read.vanished",
    mutate: (right) => ({
      read: (ref, request) => rethrow(right.read(ref, request), "NoSuchRun", { kind: "ambiguous" }),
    }),
  },

  {
    fault: "the last line of the log is lost at the end",
    breaks: "logs.whole",
    mutate: (right) => ({
      logs: async (ref, cursor, request) => {
        const page = await right.logs(ref, cursor, request);
        return page.cursor === undefined ? mapLines(page, (lines) => lines.slice(0, -1)) : page;
      },
    }),
  },
  {
    fault: "the log of a run that has ended is never at its end",
    breaks: "logs.whole",
    mutate: (right) => ({
      logs: async (ref, cursor, request) => ({ cursor: "0", ...(await right.logs(ref, cursor, request)) }),
    }),
  },
  {
    fault: "the log of a run at work begins again with every page",
    breaks: "logs.resumed",
    mutate: (right, engine) => ({
      logs: (ref, cursor, request) => right.logs(ref, isActive(engine, ref) ? undefined : cursor, request),
    }),
  },
  {
    fault: "the log of a run at work has no cursor",
    breaks: "logs.resumed",
    mutate: (right) => ({
      logs: async (ref, cursor, request) => ({ text: (await right.logs(ref, cursor, request)).text }),
    }),
  },

  {
    fault: "nulls are left out of the input",
    breaks: "payloads.input",
    mutate: (right) => ({
      start: (request) => right.start({ ...request, input: withoutNulls(request.input) }),
    }),
  },
  {
    fault: "the input is sent as Latin-1",
    breaks: "payloads.input-text",
    mutate: (right) => ({ start: (request) => right.start({ ...request, input: latin1(request.input) }) }),
  },
  {
    fault: "a member named `__proto__` is lost in a copy",
    breaks: "payloads.input-text",
    mutate: (right) => ({
      start: (request) => right.start({ ...request, input: Object.assign({}, request.input) as Json }),
    }),
  },
  {
    fault: "the largest input is refused",
    breaks: "payloads.largest-input",
    mutate: (right, engine) => ({
      start: (request) => {
        const { maxInputBytes } = engine.constructor as unknown as { maxInputBytes: number };
        const isLargest = Buffer.byteLength(JSON.stringify(request.input)) >= maxInputBytes;
        return right.start(isLargest ? { ...request, input: "x".repeat(maxInputBytes) } : request);
      },
    }),
  },
  {
    fault: "an input that is too large is an error without a meaning",
    breaks: "payloads.too-large",
    mutate: (right) => ({
      start: (request) => rethrow(right.start(request), "InputTooLarge", { kind: "ambiguous" }),
    }),
  },
  {
    fault: "an input that is too large is cut",
    breaks: "payloads.too-large",
    mutate: (right) => ({
      start: (request) =>
        right
          .start(request)
          .catch((error: Error) =>
            error.message.includes("InputTooLarge")
              ? right.start({ ...request, input: {} })
              : Promise.reject(error),
          ),
    }),
  },
  {
    fault: "the output is read as Latin-1",
    breaks: "payloads.output-text",
    mutate: (right) => telling(right, (state) => withValue(state, latin1)),
  },
  {
    fault: "the output is cut after 64 KiB",
    breaks: "payloads.large-output",
    mutate: (right) =>
      telling(right, (state) =>
        withValue(state, (value) =>
          JSON.parse(
            JSON.stringify(value, (_key, inner: unknown) =>
              typeof inner === "string" ? inner.slice(0, 65_536) : inner,
            ),
          ),
        ),
      ),
  },
];

function withValue(state: RunState, change: (value: Json) => Json): RunState {
  const value = state.output?.value;
  if (value === undefined) return state;
  const output: RunOutput = { ...state.output, value: change(value) };
  return { ...state, output };
}

function latin1(value: Json): Json {
  return JSON.parse(Buffer.from(JSON.stringify(value), "latin1").toString("latin1")) as Json;
}

function withoutNulls(value: Json): Json {
  return JSON.parse(JSON.stringify(value, (_key, inner: unknown) => inner ?? undefined)) as Json;
}

function mapLines(page: LogPage, change: (lines: string[]) => string[]): LogPage {
  const lines = page.text.split("\n").slice(0, -1);
  return {
    ...page,
    text: change(lines)
      .map((line) => `${line}\n`)
      .join(""),
  };
}

function isDeleted(ref: RunRef, isMissing: (ref: RunRef) => boolean): boolean {
  return JSON.stringify(ref).includes("run-") && isMissing(ref);
}
