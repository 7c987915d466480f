import type { Json, JsonObject } from "@taskferry/core";
import { parseDocument } from "yaml";
import { refused } from "./errors.js";

import { fields, items } from "./wire.js";

/** One input of a `workflow_dispatch` trigger. */
export interface WorkflowInput {
  readonly type: "string" | "boolean" | "number" | "choice" | "environment";
  readonly description?: string;
  /** Whether it must be given: `required` in the file and without a default. */
  readonly required: boolean;
  readonly default?: string | number | boolean;
  /** With `choice`. */
  readonly options?: readonly string[];
}

/** The inputs of a workflow, by name. */
export type WorkflowInputs = Readonly<Record<string, WorkflowInput>>;

/** What a workflow file says about being dispatched. */
export interface DispatchTrigger {
  /** The workflow's `name`. */
  readonly name?: string;
  readonly inputs: WorkflowInputs;
  /** Inputs that `run-name` shows, so that a run can be told by them. */
  readonly shownInputs: readonly string[];
}

/** https://docs.github.com/actions/reference/workflows-and-actions/workflow-syntax#onworkflow_dispatchinputs */
const MAX_INPUTS = 25;
const MAX_PAYLOAD_CHARACTERS = 65_535;
const TYPES = new Set(["string", "boolean", "number", "choice", "environment"]);

/**
 * Reads the `workflow_dispatch` trigger of a workflow file; `undefined` when it has none.
 * @throws EngineError (`rejected`) when the text is not YAML.
 */
export function dispatchTrigger(yamlText: string): DispatchTrigger | undefined {
  // YAML 1.2, in which `on` is a string; a file may say otherwise with a %YAML directive, and in YAML 1.1
  // the key `on` is the boolean true.
  const document = parseDocument(yamlText, { version: "1.2", merge: true });
  if (document.errors.length > 0) {
    throw refused("InvalidWorkflowFile", "The workflow file is not valid YAML.");
  }
  const root: unknown = document.toJS({ mapAsMap: true, maxAliasCount: 100 });
  if (!(root instanceof Map)) return undefined;
  const on: unknown = root.get("on") ?? root.get(true);
  const trigger = triggerOf(on);
  if (trigger === undefined) return undefined;
  const runName = root.get("run-name");
  const name = root.get("name");
  const inputs: Record<string, WorkflowInput> = {};
  const declared: unknown = trigger instanceof Map ? trigger.get("inputs") : undefined;
  if (declared instanceof Map) {
    for (const [key, value] of declared) inputs[String(key)] = toInput(plain(value));
  }
  return {
    ...(typeof name === "string" ? { name } : {}),
    inputs,
    shownInputs: typeof runName === "string" ? shownIn(runName) : [],
  };
}

/** The inputs of a workflow file's `workflow_dispatch` trigger: none, if it has none. */
export function workflowInputs(yamlText: string): WorkflowInputs {
  return dispatchTrigger(yamlText)?.inputs ?? {};
}

/** `on: workflow_dispatch`, `on: [push, workflow_dispatch]`, `on: { workflow_dispatch: … }`. */
function triggerOf(on: unknown): unknown {
  if (on === "workflow_dispatch") return null;
  if (Array.isArray(on)) return on.includes("workflow_dispatch") ? null : undefined;
  if (on instanceof Map && on.has("workflow_dispatch")) return on.get("workflow_dispatch") ?? null;
  return undefined;
}

function plain(value: unknown): unknown {
  return value instanceof Map ? Object.fromEntries(value) : value;
}

function toInput(value: unknown): WorkflowInput {
  const input = fields(value);
  const type = String(input["type"] ?? "string");
  const fallback = input["default"];
  const hasDefault = ["string", "number", "boolean"].includes(typeof fallback);
  return {
    type: TYPES.has(type) ? (type as WorkflowInput["type"]) : "string",
    ...(typeof input["description"] === "string" ? { description: input["description"] } : {}),
    required: input["required"] === true && !hasDefault,
    ...(hasDefault ? { default: fallback as string | number | boolean } : {}),
    ...(type === "choice" ? { options: items(input["options"]).map(String) } : {}),
  };
}

function shownIn(runName: string): string[] {
  const shown = new Set<string>();
  for (const [, expression = ""] of runName.matchAll(/\$\{\{(.*?)\}\}/gs)) {
    const uses = expression.matchAll(/\b(?:inputs|github\.event\.inputs)(?:\.([\w-]+)|\[\s*'([^']+)'\s*\])/g);
    for (const [, dotted, indexed] of uses) shown.add(dotted ?? indexed ?? "");
  }
  return [...shown];
}

/** The JSON Schema of a workflow's inputs, without those in `hidden`. */
export function inputsSchema(inputs: WorkflowInputs, hidden: readonly string[] = []): JsonObject {
  const visible = Object.entries(inputs).filter(([name]) => !hidden.includes(name));
  const required = visible.filter(([, input]) => input.required).map(([name]) => name);
  return {
    type: "object",
    properties: Object.fromEntries(visible.map(([name, input]) => [name, inputSchema(input)])),
    ...(required.length > 0 ? { required } : {}),
    additionalProperties: false,
  };
}

function inputSchema(input: WorkflowInput): JsonObject {
  const type = input.type === "boolean" || input.type === "number" ? input.type : "string";
  const fallback = input.default === undefined ? undefined : typedDefault(type, input.default);
  return {
    type,
    ...(input.description === undefined ? {} : { description: input.description }),
    ...(input.options === undefined ? {} : { enum: [...input.options] }),
    ...(fallback === undefined ? {} : { default: fallback }),
  };
}

/** A default in the schema's own type: files say `default: 3` for strings and `default: "true"` for booleans. */
function typedDefault(type: string, value: string | number | boolean): Json | undefined {
  if (type === "string") return String(value);
  if (type === "number") return Number.isFinite(Number(value)) ? Number(value) : undefined;
  return /^(true|false)$/i.test(String(value)) ? String(value).toLowerCase() === "true" : undefined;
}

/**
 * Checks arguments against a workflow's inputs and makes the strings of them that a dispatch carries.
 * Without `inputs`, only GitHub's limits are checked.
 * @throws EngineError (`rejected`) naming the inputs that are wrong, never their values.
 */
export function checkInputs(args: JsonObject, inputs: WorkflowInputs | undefined): Record<string, string> {
  const strings: Record<string, string> = {};
  for (const [name, value] of Object.entries(args)) {
    if (value === null) continue;
    const declared = inputs === undefined || !Object.hasOwn(inputs, name) ? undefined : inputs[name];
    if (inputs !== undefined && declared === undefined) {
      throw refused("UnexpectedInputs", `The workflow does not declare the input "${name}".`);
    }
    if (typeof value === "object") {
      throw refused("InvalidInput", `The input "${name}" must be a string, a number or a boolean.`);
    }
    const text = String(value);
    const problem = declared === undefined ? undefined : problemOf(declared, text);
    if (problem !== undefined) throw refused("InvalidInput", `The input "${name}" must be ${problem}.`);
    strings[name] = text;
  }
  for (const [name, input] of Object.entries(inputs ?? {})) {
    // GitHub takes "" for a required input as not given.
    if (input.required && (strings[name] ?? "") === "") {
      throw refused("MissingInput", `The workflow requires the input "${name}".`);
    }
  }
  checkLimits(strings);
  return strings;
}

/** GitHub's limits of a dispatch, in its own measure. */
function checkLimits(strings: Readonly<Record<string, string>>): void {
  const names = Object.keys(strings).length;
  if (names > MAX_INPUTS) {
    throw refused("TooManyInputs", `A dispatch takes ${MAX_INPUTS} inputs at most; these are ${names}.`);
  }
  const characters = JSON.stringify(strings).length;
  if (characters > MAX_PAYLOAD_CHARACTERS) {
    throw refused(
      "InputsTooLarge",
      `A dispatch takes ${MAX_PAYLOAD_CHARACTERS} characters of inputs at most; these are ${characters}.`,
    );
  }
}

function problemOf(input: WorkflowInput, text: string): string | undefined {
  switch (input.type) {
    case "boolean":
      return text === "true" || text === "false" ? undefined : "true or false";
    case "number":
      return text.trim() !== "" && Number.isFinite(Number(text)) ? undefined : "a number";
    case "choice":
      return input.options?.includes(text) === false ? `one of ${input.options.join(", ")}` : undefined;
    default:
      return undefined;
  }
}
