import type { JsonObject, Question } from "@taskferry/core";
import { acceptance } from "../requirements/questions.js";

/** The tool that the adapter stands behind in a server of the kit. */
export const TOOL = "kit_workflow";

/** How a task ended, in its generation's words. */
export interface Ending {
  readonly status: string;
  /** What the call would have answered. Absent when it was cancelled or could not be carried out. */
  readonly result?: JsonObject;
  readonly error?: string;
}

/** A task, seen by a client. */
export interface RemoteTask {
  /** With it, another session finds the task again. */
  readonly handle: string;
  /** Asks once. */
  status(): Promise<string>;
  /** Waits for the end, and answers questions on the way there. */
  end(): Promise<Ending>;
  cancel(): Promise<void>;
}

/** A real client of one generation, in one session. */
export interface TaskClient {
  /** Calls the tool as a task. */
  start(): Promise<RemoteTask>;
  resume(handle: string): Promise<RemoteTask>;
  close(): Promise<void>;
}

/** What a client was asked, and what it is to say. */
export interface Asked {
  readonly messages: string[];
  /** @returns the result of `elicitation/create` */
  elicit(params: unknown): JsonObject;
  /** @returns the result of `sampling/createMessage` */
  sample(params: unknown): JsonObject;
}

/** Accepts every question, with the simplest content that fits it. */
export function accepting(): Asked {
  const messages: string[] = [];
  return {
    messages,
    elicit(params) {
      const { message, requestedSchema, mode } = params as JsonObject;
      messages.push(String(message));
      const asked: Question = { key: "", message: String(message), kind: mode === "url" ? "url" : "form" };
      if (mode === "url") return { action: "accept" };
      const { content } = acceptance({ ...asked, schema: requestedSchema as JsonObject });
      return { action: "accept", content };
    },
    sample() {
      messages.push("sampling/createMessage");
      return acceptance({ key: "", message: "", kind: "sampling" }).content;
    },
  };
}
