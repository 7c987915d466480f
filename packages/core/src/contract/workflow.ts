import type { z } from "zod";
import type { Answer, Question, RunFailure, RunOutput, WorkflowAdapter } from "./adapter.js";
import { WorkflowError } from "./errors.js";
import type { Json, JsonObject } from "./json.js";
import { type CompiledSchema, compileSchema, EMPTY_OBJECT_SCHEMA, type ObjectSchema } from "./schema.js";
import type { TaskMethod } from "./task.js";

/** What a hook says before the work starts. */
export type BeforeVerdict =
  /** Go on; `arguments` replaces the client's. */
  | { readonly proceed: true; readonly arguments?: JsonObject }
  /** Ask the client first. The hook is called again with the answers. */
  | { readonly ask: readonly Question[] }
  /** Do not start. The client gets an `isError` result with this text. */
  | { readonly refuse: string };

/** A run that has ended by itself, for `toResult`. */
export interface CompletedRun {
  readonly arguments: JsonObject;
  /** The resource that was read, where the workflow stands behind resources. */
  readonly uri?: string;
  readonly output: RunOutput | undefined;
  readonly failure: RunFailure | undefined;
  readonly url: string | undefined;
}

/** What a workflow is made of. */
export interface WorkflowOptions<Input extends object = JsonObject> {
  /** The tool's (or prompt's, or resource's) name: 1–128 of `[A-Za-z0-9_.-]`, unique in a server. */
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  /** Zod object schema or JSON Schema of the arguments. @default no arguments */
  readonly input?: z.ZodType<Input> | JsonObject;
  /** Schema of `structuredContent`. A successful result that does not fit is reported as an error result. */
  readonly output?: ObjectSchema;
  readonly adapter: WorkflowAdapter;
  /** What the workflow stands behind. @default `{ kind: "tool" }` */
  readonly as?: WorkflowKind;
  /** From the client's arguments to the engine's input. @default the arguments as they are */
  readonly toNative?: (args: Input) => Json;
  /** From the end of the run to the answer of the original request. @default see `renderResult` */
  readonly toResult?: (run: CompletedRun) => JsonObject;
  /** How long an ended task is kept when the client asks for nothing, in milliseconds. @default the engine's */
  readonly retentionMs?: number;
  /** How often the engine is read while clients poll, in milliseconds; also what clients are told. @default 2000 */
  readonly pollMs?: number;
  /**
   * Whether clients may (`optional`), must (`required`) or cannot (`forbidden`) run it as a task.
   * @default "optional"
   */
  readonly task?: "optional" | "required" | "forbidden";
  /** Asks the client, changes or refuses a call before anything is started. Pure: it is called once per round of answers. */
  readonly before?: (call: {
    readonly arguments: Input;
    readonly answers: Readonly<Record<string, Answer>>;
  }) => BeforeVerdict | Promise<BeforeVerdict>;
  /** What to do with the run when a client without tasks goes away while it waits. @default "continue" */
  readonly onAbandon?: "continue" | "stop";
  /** MCP tool annotations (`readOnlyHint`, …). */
  readonly annotations?: JsonObject;
}

/** What a workflow stands behind: a tool, a prompt, a resource (or a family of them: `{name}` in the URI). */
export type WorkflowKind =
  | { readonly kind: "tool" }
  | { readonly kind: "prompt" }
  | { readonly kind: "resource"; readonly uri: string; readonly mimeType?: string };

/** A checked workflow, ready to serve. */
export interface Workflow {
  readonly name: string;
  readonly title: string | undefined;
  readonly description: string | undefined;
  readonly method: TaskMethod;
  readonly kind: WorkflowKind;
  readonly input: CompiledSchema;
  readonly output: CompiledSchema | undefined;
  readonly adapter: WorkflowAdapter;
  readonly toNative: (args: JsonObject) => Json;
  readonly toResult: ((run: CompletedRun) => JsonObject) | undefined;
  readonly before: WorkflowOptions["before"] | undefined;
  readonly retentionMs: number | undefined;
  readonly pollMs: number;
  readonly task: "optional" | "required" | "forbidden";
  readonly onAbandon: "continue" | "stop";
  readonly annotations: JsonObject | undefined;
}

const METHOD_OF = { tool: "tools/call", prompt: "prompts/get", resource: "resources/read" } as const;

/**
 * Makes a workflow of an adapter and what a client needs to know about it.
 * @throws WorkflowError `configuration` if a name, schema or duration cannot be used.
 */
export function defineWorkflow<Input extends object = JsonObject>(options: WorkflowOptions<Input>): Workflow {
  const { name, adapter } = options;
  if (typeof name !== "string" || !/^[A-Za-z0-9_.-]{1,128}$/.test(name)) {
    throw new WorkflowError(
      "configuration",
      `Workflow name ${JSON.stringify(name)} cannot be used: take 1 to 128 of A-Z a-z 0-9 _ . -`,
    );
  }
  if (
    typeof adapter?.start !== "function" ||
    typeof adapter.read !== "function" ||
    typeof adapter.engine !== "string"
  ) {
    throw new WorkflowError(
      "configuration",
      `Workflow "${name}" needs an adapter with engine, start and read`,
    );
  }
  if (!["optional", "required", "forbidden", undefined].includes(options.task)) {
    throw new WorkflowError(
      "configuration",
      `task of workflow "${name}" is "optional", "required" or "forbidden"; got ${JSON.stringify(options.task)}`,
    );
  }
  const kind = options.as ?? { kind: "tool" };
  const pollMs = checkDuration(options.pollMs ?? 2000, `pollMs of workflow "${name}"`);
  if (options.retentionMs !== undefined)
    checkDuration(options.retentionMs, `retentionMs of workflow "${name}"`);
  const toNative = options.toNative as ((args: JsonObject) => Json) | undefined;
  return {
    name,
    title: options.title,
    description: options.description,
    method: METHOD_OF[kind.kind],
    kind,
    input: compileSchema(options.input ?? EMPTY_OBJECT_SCHEMA, "input", `input of workflow "${name}"`),
    output:
      options.output === undefined
        ? undefined
        : compileSchema(options.output, "output", `output of workflow "${name}"`),
    adapter,
    toNative: toNative ?? ((args) => args),
    toResult: options.toResult,
    before: options.before as WorkflowOptions["before"],
    retentionMs: options.retentionMs,
    pollMs,
    task: options.task ?? "optional",
    onAbandon: options.onAbandon ?? "continue",
    annotations: options.annotations,
  };
}

/** @throws WorkflowError `configuration` unless it is a whole number of milliseconds from 1 to ten years. */
export function checkDuration(value: number, what: string): number {
  if (Number.isInteger(value) && value >= 1 && value <= 315_360_000_000) return value;
  throw new WorkflowError(
    "configuration",
    `The ${what} must be a whole number of milliseconds, at least 1; got ${value}`,
  );
}
