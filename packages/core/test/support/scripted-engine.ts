/** A workflow engine whose every word is the test's: for states that no real engine can be brought to say on demand. */
import type { Answer, RunState, WorkflowAdapter } from "../../src/index.js";
import type { Gate } from "./gate.js";

export const QUEUED: RunState = { native: "QUEUED", status: "submitted" };
export const RUNNING: RunState = { native: "RUNNING", status: "working" };
export const ASKING: RunState = {
  native: "WAITING",
  status: "input_required",
  questions: [
    {
      key: "name",
      message: "Who?",
      schema: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
    },
  ],
};

export class ScriptedEngine {
  readonly starts: string[] = [];
  readonly stops: string[] = [];
  readonly answers: { key: string; answer: Answer }[] = [];
  reads = 0;
  /** What every run says of itself. */
  state: RunState = RUNNING;
  /** What a run says after it was told to stop; `undefined`: it goes on. */
  stopped: RunState | undefined = { native: "STOPPED", status: "cancelled" };
  /** Keeps `start` from answering. */
  startGate: Gate | undefined;
  /** Keeps `answer` from being taken. */
  answerGate: Gate | undefined;

  readonly adapter: WorkflowAdapter = {
    engine: "scripted",
    startsOnce: true,
    start: async ({ key, signal }) => {
      this.starts.push(key);
      await Promise.race([
        this.startGate?.opened,
        new Promise((_, reject) => {
          if (this.startGate !== undefined) signal.addEventListener("abort", () => reject(signal.reason));
        }),
        ...(this.startGate === undefined ? [Promise.resolve()] : []),
      ]);
      return { ref: { key } };
    },
    read: async () => {
      this.reads += 1;
      return this.state;
    },
    stop: async (ref) => {
      this.stops.push((ref as { key: string }).key);
      if (this.stopped !== undefined) this.state = this.stopped;
    },
    answer: async (_ref, key, answer) => {
      await this.answerGate?.opened;
      this.answers.push({ key, answer });
      this.state = RUNNING;
    },
  };
}
