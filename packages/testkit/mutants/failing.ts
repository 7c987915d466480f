import { canonicalJson, EngineError, type Json, type RunRef } from "@taskferry/core";
import { refsOf } from "./adapter.js";
import { NativeError } from "./engine.js";
import { explaining, type Mutant, rethrow, telling } from "./mutant.js";

const NEVER = new AbortController().signal;

/** Faults in what goes wrong: errors, deadlines, forged events, colliding keys, secrets. */
export const failures: readonly Mutant[] = [
  {
    fault: "a throttled start is ambiguous",
    breaks: "errors.throttled-start",
    mutate: (right) => ({
      start: (request) =>
        rethrow(right.start(request), "Throttled", { kind: "ambiguous", retryAfterMs: 7000 }),
    }),
  },
  {
    fault: "a throttled read is a rejection",
    breaks: "errors.throttled-read",
    mutate: (right) => ({
      read: (ref, request) => rethrow(right.read(ref, request), "Throttled", { kind: "rejected" }),
    }),
  },
  {
    fault: "seconds are told as milliseconds",
    breaks: "errors.retry-after",
    mutate: (right) =>
      explaining(right, "Throttled", (verdict) => ({
        ...verdict,
        retryAfterMs: (verdict.retryAfterMs ?? 0) / 1000,
      })),
  },
  {
    fault: "a refused start is ambiguous",
    breaks: "errors.rejected",
    mutate: (right) => explaining(right, "Refused", (verdict) => ({ ...verdict, kind: "ambiguous" })),
  },
  {
    fault: "a refused start has no code",
    breaks: "errors.rejected",
    mutate: (right) => explaining(right, "Refused", ({ kind }) => ({ kind })),
  },
  {
    fault: "a reset connection is a rejection",
    breaks: "errors.disconnected",
    mutate: (right) => explaining(right, "ECONNRESET", (verdict) => ({ ...verdict, kind: "rejected" })),
  },
  {
    fault: "a lost response is safe to retry",
    breaks: "errors.lost-start",
    mutate: (right) => explaining(right, "ETIMEDOUT", (verdict) => ({ ...verdict, kind: "retry" })),
  },
  {
    fault: "`explain` expects an Error",
    breaks: "errors.strange",
    mutate: (right) => ({
      explain: (error) => ((error as Error).name === "NativeError" ? right.explain(error) : undefined),
    }),
  },
  {
    fault: "`explain` takes what it does not know for a rejection",
    breaks: "errors.strange",
    mutate: (right) => ({ explain: (error) => right.explain(error) ?? { kind: "rejected" } }),
  },

  { fault: "a start has no time", breaks: "deadline.sound", mutate: () => ({ startTimeoutMs: 0 }) },
  {
    fault: "a start looks at its signal only later",
    breaks: "deadline.before-start",
    mutate: (right) => ({
      start: (request) => right.start(request.signal.aborted ? { ...request, signal: NEVER } : request),
    }),
  },
  {
    fault: "a start looks at its signal only once",
    breaks: "deadline.start",
    mutate: (right) => ({
      start: async (request) => {
        request.signal.throwIfAborted();
        return right.start({ ...request, signal: NEVER });
      },
    }),
  },
  {
    fault: "a read ignores its signal",
    breaks: "deadline.read",
    mutate: (right) => ({ read: (ref, request) => right.read(ref, { ...request, signal: NEVER }) }),
  },
  {
    fault: "a stop ignores its signal",
    breaks: "deadline.stop",
    mutate: (right) => ({ stop: (ref, request) => right.stop(ref, { ...request, signal: NEVER }) }),
  },
  {
    fault: "a find ignores its signal",
    breaks: "deadline.find",
    mutate: (right) => ({ find: (request) => right.find({ ...request, signal: NEVER }) }),
  },
  {
    fault: "an answer ignores its signal",
    breaks: "deadline.answer",
    mutate: (right) => ({
      answer: (ref, key, answer) => right.answer(ref, key, answer, { signal: NEVER }),
    }),
  },
  {
    fault: "a log page ignores its signal",
    breaks: "deadline.logs",
    mutate: (right) => ({ logs: (ref, cursor) => right.logs(ref, cursor, { signal: NEVER }) }),
  },

  {
    fault: "an event's ref is written in another way than the start's",
    breaks: "events.refs",
    mutate: (right) => ({
      events: async (request) => (await right.events(request)).map((ref): RunRef => ({ run: ref })),
    }),
  },
  {
    fault: "an event about something else is about an unknown run",
    breaks: "events.foreign",
    mutate: (right) => ({
      events: async (request) => {
        const refs = await right.events(request);
        return refs.length > 0 ? refs : [{ id: "unknown" }];
      },
    }),
  },
  {
    fault: "a delivery without a signature is believed",
    breaks: "events.unsigned",
    mutate: (right) => ({
      events: async (request) =>
        request.headers["x-scripted-signature"] === undefined ? refsOf(request.body) : right.events(request),
    }),
  },
  {
    fault: "the signature is checked over the parsed body",
    breaks: "events.tampered",
    mutate: (right) => ({
      events: (request) => {
        const parsed = JSON.parse(Buffer.from(request.body).toString("utf8")) as Json;
        return right.events({ ...request, body: Buffer.from(canonicalJson(parsed)) });
      },
    }),
  },

  {
    fault: "keys are cut to 25 characters",
    breaks: "ids.last-character",
    mutate: (right) => ({
      start: (request) => right.start({ ...request, key: request.key.slice(0, 25) }),
      find: (request) => right.find({ ...request, key: request.key.slice(0, 25) }),
    }),
  },
  {
    fault: "keys of digits become numbers",
    breaks: "ids.digits",
    mutate: (right) => ({
      start: (request) =>
        right.start({ ...request, key: /^\d+$/.test(request.key) ? `${Number(request.key)}` : request.key }),
    }),
  },

  {
    fault: "a refusal quotes the input",
    breaks: "secrets.input",
    mutate: (right) => ({
      start: (request) =>
        right.start(request).catch((error: unknown) => {
          if (!(error instanceof NativeError) || error.code !== "Refused") throw error;
          throw new EngineError(
            { kind: "rejected", code: "Refused", message: error.details.body ?? "" },
            error,
          );
        }),
    }),
  },
  {
    fault: "a refused answer is quoted",
    breaks: "secrets.answer",
    mutate: (right) => ({
      answer: (ref, key, answer, request) =>
        rethrow(right.answer(ref, key, answer, request), "NoSuchQuestion", {
          kind: "gone",
          message: `nobody asked for ${JSON.stringify(answer.content)}`,
        }),
    }),
  },
  {
    fault: "a broken connection shows the credentials",
    breaks: "secrets.credentials",
    mutate: (right, engine) =>
      explaining(right, "ECONNRESET", (verdict) => ({
        ...verdict,
        message: `POST https://scripted.example/runs (Authorization: Bearer ${engine.token})`,
      })),
  },
  {
    fault: "the run's URL has the token in it",
    breaks: "secrets.ref",
    mutate: (right, engine) =>
      telling(right, (state) => ({ ...state, url: `https://scripted.example/?token=${engine.token}` })),
  },
];
