/** Workflows for tests of the draft's rules, served in sessions. */
import { asyncFunction, CallRefused } from "@taskferry/function";
import { z } from "zod";
import {
  defineWorkflow,
  type ServeHttpOptions,
  type TaskEngine,
  type TaskEngineOptions,
  type Workflow,
  type WorkflowOptions,
} from "../../src/index.js";
import { DraftClient } from "./draft-client.js";
import { type Gate, gate, passes } from "./gate.js";
import { ScriptedEngine } from "./scripted-engine.js";
import { fixtureEngine, overHttp } from "./serving.js";

export interface Draft {
  readonly engine: TaskEngine;
  readonly url: string;
  readonly client: DraftClient;
  /** What the tool `scripted` runs on. */
  readonly scripted: ScriptedEngine;
  /** What `waits` waits for. */
  readonly door: Gate;
  connect(options?: Parameters<typeof DraftClient.connect>[1]): Promise<DraftClient>;
}

export interface DraftOptions {
  readonly engine?: Omit<Partial<TaskEngineOptions>, "workflows">;
  readonly http?: Partial<ServeHttpOptions>;
  readonly workflows?: readonly Workflow[];
  readonly client?: Parameters<typeof DraftClient.connect>[1];
}

/** Serves the workflows and connects a client of the draft. */
export async function draft(options: DraftOptions = {}): Promise<Draft> {
  const scripted = new ScriptedEngine();
  const door = gate();
  const workflows = [...draftWorkflows(scripted, door), ...(options.workflows ?? [])];
  const { engine } = await fixtureEngine({ ...options.engine, workflows });
  const { url } = await overHttp(engine, options.http);
  const connect: Draft["connect"] = (given) => DraftClient.connect(url, given);
  return { engine, url, scripted, door, connect, client: await connect(options.client) };
}

const name = z.object({ name: z.string() });

function draftWorkflows(scripted: ScriptedEngine, door: Gate): Workflow[] {
  const workflow = (options: WorkflowOptions<Record<string, never>>) =>
    defineWorkflow({ pollMs: 10, ...options });
  return [
    defineWorkflow({
      name: "echo",
      pollMs: 10,
      input: z.object({ text: z.string() }),
      adapter: asyncFunction(async ({ text }: { text: string }) => ({ text })),
    }),
    workflow({
      name: "waits",
      adapter: asyncFunction(async (_input, { signal }) => {
        await passes(door, signal);
        return "through";
      }),
    }),
    workflow({ name: "scripted", adapter: scripted.adapter }),
    workflow({
      name: "fails",
      adapter: asyncFunction(async () => {
        throw new TypeError("it went wrong");
      }),
    }),
    workflow({
      name: "refuses",
      adapter: asyncFunction(async () => {
        throw new CallRefused("API rate limit exceeded");
      }),
    }),
    workflow({
      name: "surveys",
      adapter: asyncFunction(async (_input, { ask }) => {
        const [who, where] = await Promise.all([
          ask({ message: "Who?", schema: name }),
          ask({ message: "Where?", schema: name }),
        ]);
        return `${who.content?.name} in ${where.content?.name}`;
      }),
    }),
    workflow({
      name: "asks_first",
      before: ({ answers }) =>
        answers.name === undefined
          ? { ask: [{ key: "name", message: "For whom?", schema: z.toJSONSchema(name) as never }] }
          : { proceed: true },
      adapter: asyncFunction(async () => "asked and done"),
    }),
    workflow({ name: "never_as_task", task: "forbidden", adapter: asyncFunction(async () => "done") }),
    workflow({
      name: "summary",
      as: { kind: "prompt" },
      adapter: asyncFunction(async () => "Summarize this."),
    }),
    workflow({
      name: "report",
      as: { kind: "resource", uri: "report://today", mimeType: "text/plain" },
      adapter: asyncFunction(async () => "All is well."),
    }),
  ];
}
