import type { RunRef } from "@taskferry/core";
import { hasEnded, type ScriptedEngine } from "./engine.js";
import { isActive, type Mutant, nativeOf, telling } from "./mutant.js";

/** Another run than the key's own. */
const OTHER = "-once-more";

const inFlight = new Set<string>();
const lost = new Set<string>();

const activeByKey = (engine: ScriptedEngine, key: string) => {
  const run = engine.byKey(key);
  return run !== undefined && !hasEnded(run);
};

const newest = (engine: ScriptedEngine): RunRef => ({ id: [...engine.runs.keys()].at(-1) ?? "" });

/** Faults in how runs begin, are found, and end. */
export const lifecycle: readonly Mutant[] = [
  { fault: "every `create` is about the same runs", breaks: "create.isolated", sharesRuns: true },
  {
    fault: "the engine's name tells instances apart",
    breaks: "create.named",
    mutate: () => ({ engine: `scripted-${performance.now()}` }),
  },
  {
    fault: "the engine's name is a sentence",
    breaks: "create.named",
    mutate: () => ({ engine: "A scripted engine" }),
  },
  {
    fault: "`close` stops the runs that this instance started",
    breaks: "create.closes",
    mutate: (right, engine) => {
      const started: RunRef[] = [];
      return {
        start: async (request) => {
          const run = await right.start(request);
          started.push(run.ref);
          return run;
        },
        close: async () => {
          for (const ref of started) if (isActive(engine, ref)) engine.stop(nativeOf(engine, ref)?.id ?? "");
        },
      };
    },
  },
  {
    fault: "`close` throws the second time",
    breaks: "create.closes",
    mutate: () => {
      let isOpen = true;
      return {
        close: async () => {
          if (!isOpen) throw new Error("closed already");
          isOpen = false;
        },
      };
    },
  },

  {
    fault: "a first start dispatches twice",
    breaks: "start.runs",
    mutate: (right, engine) => ({
      start: async (request) => {
        const run = await right.start(request);
        if (!request.retry && !request.key.endsWith(OTHER)) engine.start(request.key + OTHER, request.input);
        return run;
      },
    }),
  },
  {
    fault: "the started run holds a URL object",
    breaks: "start.json",
    mutate: (right) => ({
      start: async (request) => {
        const run = await right.start(request);
        return { ...run, url: new URL("https://scripted.example/") as unknown as string };
      },
    }),
  },
  {
    fault: "a retry starts another run while the first goes on",
    breaks: "start.once",
    mutate: (right, engine) => {
      const returned = new Set<string>();
      return {
        start: async (request) => {
          const again = request.retry && returned.has(request.key) && activeByKey(engine, request.key);
          const run = await right.start(again ? { ...request, key: request.key + OTHER } : request);
          returned.add(request.key);
          return run;
        },
      };
    },
  },
  {
    fault: "two starts at the same time do not know of each other",
    breaks: "start.once-at-a-time",
    mutate: (right) => ({
      start: async (request) => {
        const { key } = request;
        const isSecond = inFlight.has(key);
        inFlight.add(key);
        try {
          return await right.start(isSecond ? { ...request, key: key + OTHER } : request);
        } finally {
          if (!isSecond) inFlight.delete(key);
        }
      },
    }),
  },
  {
    fault: "a key is free again when its run has ended",
    breaks: "start.once-ended",
    mutate: (right, engine) => ({
      start: (request) => {
        const run = engine.byKey(request.key);
        const key = run && hasEnded(run) ? request.key + OTHER : request.key;
        return right.start({ ...request, key });
      },
    }),
  },
  {
    fault: "a start whose response was lost is started again under another key",
    breaks: "start.once-lost",
    mutate: (right) => ({
      start: async (request) => {
        const key = lost.has(request.key) ? request.key + OTHER : request.key;
        return right.start({ ...request, key }).catch((error: unknown) => {
          lost.add(request.key);
          throw error;
        });
      },
    }),
  },
  {
    fault: "the start writes into the input and cleans up afterwards",
    breaks: "start.input-untouched",
    mutate: (right) => ({
      start: async (request) => {
        const input = request.input as Record<string, unknown>;
        input["trace"] = "1";
        delete input["trace"];
        return right.start(request);
      },
    }),
  },
  {
    fault: "a read does not ask whether a run is claimed",
    breaks: "start.claims",
    mutate: (right) => ({
      read: (ref, request) => right.read(ref, { ...request, isClaimed: async () => false }),
    }),
  },

  {
    fault: "`find` answers the newest run when the key has none",
    breaks: "find.none",
    mutate: (right, engine) => ({
      find: async (request) => (await right.find(request)) ?? { ref: newest(engine) },
    }),
  },
  {
    fault: "`find` answers the newest run instead of the key's",
    breaks: "find.again",
    mutate: (right, engine) => ({
      find: async (request) => (await right.find(request)) && { ref: newest(engine) },
    }),
  },
  {
    fault: "`find` looks among active runs only",
    breaks: "find.ended",
    mutate: (right, engine) => ({
      find: async (request) => {
        const found = await right.find(request);
        return found && isActive(engine, found.ref) ? found : undefined;
      },
    }),
  },
  {
    fault: "`find` knows only starts that were answered",
    breaks: "find.lost",
    mutate: (right) => {
      const failed = new Set<string>();
      return {
        start: (request) =>
          right.start(request).catch((error: unknown) => {
            failed.add(request.key);
            throw error;
          }),
        find: async (request) => {
          const found = await right.find(request);
          return failed.has(request.key) ? undefined : found;
        },
      };
    },
  },

  {
    fault: "an unknown word is told as working",
    breaks: "words.unknown",
    mutate: (right) =>
      telling(right, (state) => (state.status === "unchanged" ? { ...state, status: "working" } : state)),
  },
  {
    fault: "an unknown word is told as completed",
    breaks: "words.unknown",
    mutate: (right) =>
      telling(right, (state) => (state.native === "SIDEWAYS" ? { ...state, status: "completed" } : state)),
  },
  {
    fault: "after an unknown word the instance believes nothing any more",
    breaks: "words.known-again",
    mutate: (right) => {
      let isLost = false;
      return telling(right, (state) => {
        isLost ||= state.native === "SIDEWAYS";
        return isLost ? { native: state.native, status: "unchanged" } : state;
      });
    },
  },

  {
    fault: "the end is forgotten after a few reads",
    breaks: "terminal.stays",
    mutate: (right) => {
      let reads = 0;
      return telling(right, (state) =>
        state.status === "completed" && ++reads > 4 ? { native: state.native, status: "working" } : state,
      );
    },
  },
  {
    fault: "no attempt is told",
    breaks: "terminal.revived",
    mutate: (right) => telling(right, ({ attempt: _, ...state }) => state),
  },
  {
    fault: "every attempt is told as the first",
    breaks: "terminal.revived",
    mutate: (right) => telling(right, (state) => ({ ...state, attempt: 1 })),
  },

  {
    fault: "a stopped run is told as a failure",
    breaks: "stop.cancels",
    mutate: (right) =>
      telling(right, (state) =>
        state.status === "cancelled"
          ? { ...state, status: "completed", failure: { code: "Stopped", message: "Stopped" } }
          : state,
      ),
  },
  {
    fault: "a second stop is an error",
    breaks: "stop.repeatable",
    mutate: (right, engine) => ({
      stop: async (ref, request) => {
        if (nativeOf(engine, ref)?.word === "STOPPED") throw new Error("already stopped");
        await right.stop(ref, request);
      },
    }),
  },
  {
    fault: "a stop after the end is an error",
    breaks: "stop.ended",
    mutate: (right, engine) => ({
      stop: async (ref, request) => {
        if (nativeOf(engine, ref)?.word === "DONE") throw new Error("conflict");
        await right.stop(ref, request);
      },
    }),
  },
  {
    fault: "a stop after the end makes the run cancelled",
    breaks: "stop.ended",
    mutate: (right, engine) => {
      const stopped = new Set<string>();
      return {
        ...telling(right, (state, ref) =>
          stopped.has(JSON.stringify(ref)) ? { native: state.native, status: "cancelled" } : state,
        ),
        stop: async (ref, request) => {
          if (nativeOf(engine, ref)?.word === "DONE") stopped.add(JSON.stringify(ref));
          await right.stop(ref, request);
        },
      };
    },
  },
  {
    fault: "a stop of a deleted run is an error without a meaning",
    breaks: "stop.vanished",
    mutate: (right, engine) => ({
      stop: async (ref, request) => {
        if (nativeOf(engine, ref) === undefined) throw new Error("404");
        await right.stop(ref, request);
      },
    }),
  },

  {
    fault: "a run is told as cancelled as soon as the stop was taken",
    breaks: "race.stop-is-no-end",
    mutate: (right, engine) =>
      afterStop(right, (state, ref) =>
        isActive(engine, ref) ? { native: state.native, status: "cancelled" } : state,
      ),
  },
  {
    fault: "a run that ends well after a stop is told as cancelled",
    breaks: "race.end-wins",
    mutate: (right, engine) => {
      const outlived = new Set<string>();
      return {
        ...telling(right, (state, ref) =>
          outlived.has(JSON.stringify(ref)) && state.status === "completed"
            ? { native: state.native, status: "cancelled" }
            : state,
        ),
        stop: async (ref, request) => {
          await right.stop(ref, request);
          if (isActive(engine, ref)) outlived.add(JSON.stringify(ref));
        },
      };
    },
  },
  {
    fault: "when stop and end meet, the reads take turns",
    breaks: "race.one-end",
    mutate: (right, engine) => {
      const met = new Set<string>();
      let reads = 0;
      return {
        ...telling(right, (state, ref) =>
          met.has(JSON.stringify(ref)) && ++reads % 2 === 0
            ? { native: state.native, status: "cancelled" }
            : state,
        ),
        stop: async (ref, request) => {
          const wasActive = isActive(engine, ref);
          await right.stop(ref, request);
          if (wasActive && nativeOf(engine, ref)?.word === "DONE") met.add(JSON.stringify(ref));
        },
      };
    },
  },
];

function afterStop(
  right: Parameters<typeof telling>[0],
  change: Parameters<typeof telling>[1],
): ReturnType<typeof telling> {
  const stopped = new Set<string>();
  return {
    ...telling(right, (state, ref) => (stopped.has(JSON.stringify(ref)) ? change(state, ref) : state)),
    stop: async (ref, request) => {
      await right.stop(ref, request);
      stopped.add(JSON.stringify(ref));
    },
  };
}
