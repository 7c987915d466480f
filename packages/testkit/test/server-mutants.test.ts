/** The server plays notice what they are there to notice. */
import { EngineError, type RunState, type WorkflowAdapter } from "@taskferry/core";
import { expect, it } from "vitest";
import { checkServerRequirement, SERVER_REQUIREMENTS, type ServerPlay } from "../src/index.js";
import { puppetDrive, puppetSubject } from "./puppets.js";

/** One fault for each play, in a right adapter. */
const FAULTS: Readonly<Record<ServerPlay, (right: WorkflowAdapter) => Partial<WorkflowAdapter>>> = {
  completes: (right) => ({
    // The value is there, but only as text.
    read: telling(right, ({ output, ...state }) =>
      output === undefined ? state : { ...state, output: { text: JSON.stringify(output.value) } },
    ),
  }),
  fails: (right) => ({
    read: telling(right, ({ failure, ...state }) =>
      failure === undefined ? state : { ...state, output: { text: failure.message } },
    ),
  }),
  asks: () => ({ answer: async () => {} }),
  cancels: () => ({ stop: async () => {} }),
  restarts: (right) => {
    const own = new Set<string>();
    return {
      start: (request) => {
        own.add(request.key);
        return right.start(request);
      },
      read: (ref, request) => {
        if (own.has(request.key)) return right.read(ref, request);
        throw new EngineError({ kind: "gone", message: "Not in this instance's memory" });
      },
    };
  },
};

function telling(right: WorkflowAdapter, change: (state: RunState) => RunState): WorkflowAdapter["read"] {
  return async (ref, request) => change(await right.read(ref, request));
}

const plays = SERVER_REQUIREMENTS.map((requirement) => ({
  requirement,
  id: requirement.id,
  play: requirement.id.slice(requirement.id.lastIndexOf(".") + 1) as ServerPlay,
}));

it.concurrent.each(plays)("$id notices its fault", { timeout: 60_000 }, async ({ requirement, play }) => {
  const create = () => {
    const subject = puppetSubject();
    const connect = async () => {
      const right = await subject.connect();
      return { ...right, ...FAULTS[play](right) };
    };
    return { ...subject, connect };
  };
  const options = { create, drive: puppetDrive, patienceMs: 1_500, timeoutMs: 8_000 };
  const { outcome, reason } = await checkServerRequirement(requirement, options);
  expect({ outcome, reason }).toMatchObject({ outcome: "broken" });
});
