import { canonicalJson, EngineError, type Json, type Question, type RunRef } from "@taskferry/core";
import { refsOf } from "./adapter.js";
import { NativeError } from "./engine.js";
import { explaining, isActive, type Mutant, nativeOf, rethrow, telling } from "./mutant.js";

const NEVER = new AbortController().signal;

const questionGone = (code = "NoSuchQuestion") => new EngineError({ kind: "gone", message: code });

/** Faults in questions and answers, in a new process, and in what goes wrong on the way. */
export const talks: readonly Mutant[] = [
  {
    fault: "a run that waits for an answer is told as working",
    breaks: "questions.open",
    mutate: (right) =>
      telling(right, (state) =>
        state.status === "input_required" ? { ...state, status: "working" } : state,
      ),
  },
  {
    fault: "a question says nothing",
    breaks: "questions.well-formed",
    mutate: (right) => asking(right, (question) => ({ ...question, message: "" })),
  },
  {
    fault: "a form has an object in it",
    breaks: "questions.well-formed",
    mutate: (right) =>
      asking(right, (question) => ({
        ...question,
        schema: { type: "object", properties: { where: { type: "object", properties: {} } } },
      })),
  },
  {
    fault: "a question's key is longer than core can store",
    breaks: "questions.well-formed",
    mutate: (right) => ({
      ...asking(right, (question) => ({ ...question, key: question.key.padEnd(201, "~") })),
      answer: (ref, key, answer, request) => right.answer(ref, key.replace(/~+$/, ""), answer, request),
    }),
  },
  {
    fault: "only one of two open questions is told",
    breaks: "questions.both",
    mutate: (right) =>
      telling(right, (state) =>
        state.questions ? { ...state, questions: state.questions.slice(0, 1) } : state,
      ),
  },
  {
    fault: "a question that was told once is told for ever",
    breaks: "questions.closed",
    mutate: (right) => {
      const told = new Map<string, Question>();
      return telling(right, (state) => {
        for (const question of state.questions ?? []) told.set(question.key, question);
        return told.size > 0 ? { ...state, questions: [...told.values()] } : state;
      });
    },
  },
  {
    fault: "an answer arrives without its content",
    breaks: "questions.answered",
    mutate: (right) => ({
      answer: (ref, key, { action }, request) => right.answer(ref, key, { action }, request),
    }),
  },
  {
    fault: "an accepted question arrives as declined",
    breaks: "questions.answered",
    mutate: (right) => ({
      answer: (ref, key, answer, request) =>
        right.answer(ref, key, { ...answer, action: "decline" }, request),
    }),
  },
  {
    fault: "a declined question arrives as accepted",
    breaks: "questions.declined",
    mutate: (right) => ({
      answer: (ref, key, answer, request) => right.answer(ref, key, { ...answer, action: "accept" }, request),
    }),
  },
  {
    fault: "a second answer goes through in silence",
    breaks: "questions.answered-twice",
    mutate: (right) => {
      const answered = new Set<string>();
      return {
        answer: async (ref, key, answer, request) => {
          const question = JSON.stringify([ref, key]);
          if (answered.has(question)) return;
          await right.answer(ref, key, answer, request);
          answered.add(question);
        },
      };
    },
  },
  {
    fault: "an answer to a question that was closed elsewhere is an error without a meaning",
    breaks: "questions.stale",
    mutate: (right) => {
      let hasAnswered = false;
      return {
        answer: async (ref, key, answer, request) => {
          const call = right.answer(ref, key, answer, request);
          await (hasAnswered ? call : rethrow(call, "NoSuchQuestion", { kind: "ambiguous" }));
          hasAnswered = true;
        },
      };
    },
  },
  {
    fault: "a question's key is its place among the open ones",
    breaks: "questions.new-key",
    mutate: (right, engine) => ({
      ...telling(right, (state) => {
        const questions = state.questions?.map((question, index) => ({ ...question, key: `${index}` }));
        return questions ? { ...state, questions } : state;
      }),
      answer: async (ref, key, answer, request) => {
        request.signal.throwIfAborted();
        const open = nativeOf(engine, ref)?.questions.filter((question) => question.isOpen) ?? [];
        const token = open[Number(key)]?.token;
        if (token === undefined) throw questionGone();
        await right.answer(ref, token, answer, request);
      },
    }),
  },

  {
    fault: "an instance takes runs that it did not start for lost",
    breaks: "recovery.read",
    mutate: (right, engine) => {
      const own = new Set<string>();
      return {
        start: async (request) => {
          const run = await right.start(request);
          own.add(JSON.stringify(run.ref));
          return run;
        },
        ...telling(right, (state, ref) =>
          !own.has(JSON.stringify(ref)) && isActive(engine, ref) && state.ref === undefined
            ? { native: "LOST", status: "failed", failure: { code: "Lost", message: "Lost" } }
            : state,
        ),
      };
    },
  },
  {
    fault: "an instance stops only runs that it started",
    breaks: "recovery.stop",
    mutate: (right) => {
      const own = new Set<string>();
      return {
        start: async (request) => {
          const run = await right.start(request);
          own.add(JSON.stringify(run.ref));
          return run;
        },
        stop: async (ref, request) => {
          if (own.has(JSON.stringify(ref))) await right.stop(ref, request);
        },
      };
    },
  },
  {
    fault: "an instance answers only questions that it has read",
    breaks: "recovery.answer",
    mutate: (right) => {
      const seen = new Set<string>();
      return {
        ...telling(right, (state) => {
          for (const question of state.questions ?? []) seen.add(question.key);
          return state;
        }),
        answer: async (ref, key, answer, request) => {
          if (!seen.has(key)) throw questionGone();
          await right.answer(ref, key, answer, request);
        },
      };
    },
  },
  {
    fault: "an instance finds only runs that it started",
    breaks: "recovery.find",
    mutate: (right) => {
      const own = new Set<string>();
      return {
        start: (request) => {
          own.add(request.key);
          return right.start(request);
        },
        find: async (request) => {
          const found = await right.find(request);
          return own.has(request.key) ? found : undefined;
        },
      };
    },
  },

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

function asking(right: Parameters<typeof telling>[0], change: (question: Question) => Question) {
  return telling(right, (state) =>
    state.questions ? { ...state, questions: state.questions.map(change) } : state,
  );
}
