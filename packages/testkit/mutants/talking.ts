import { EngineError, type Question } from "@taskferry/core";
import { isActive, type Mutant, nativeOf, rethrow, telling } from "./mutant.js";

const questionGone = (code = "NoSuchQuestion") => new EngineError({ kind: "gone", message: code });

/** Faults in questions and answers, and in a new process. */
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
];

function asking(right: Parameters<typeof telling>[0], change: (question: Question) => Question) {
  return telling(right, (state) =>
    state.questions ? { ...state, questions: state.questions.map(change) } : state,
  );
}
