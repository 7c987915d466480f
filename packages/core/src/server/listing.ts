/** How workflows show in `tools/list`, `resources/list`, `resources/templates/list` and `prompts/list`. */
import type { JsonObject } from "../contract/json.js";
import type { Workflow } from "../contract/workflow.js";
import type { Companion } from "./companions.js";
import { FAILURE_SCHEMA, HANDLE_SCHEMA } from "./inline.js";

/** A workflow as a `Tool`. `execution.taskSupport` belongs to the 2025 era alone. */
export function toolOf(workflow: Workflow, modern: boolean): JsonObject {
  return {
    name: workflow.name,
    ...described(workflow),
    inputSchema: workflow.input.json,
    ...(workflow.output !== undefined && { outputSchema: admittingHandle(workflow.output.json) }),
    ...(workflow.annotations !== undefined && { annotations: workflow.annotations }),
    ...(!modern && { execution: { taskSupport: workflow.task } }),
  };
}

/** A companion tool as a `Tool`. */
export function companionTool({ name, title, description, input, annotations }: Companion): JsonObject {
  return { name, title, description, inputSchema: input.json, annotations: { title, ...annotations } };
}

/** A workflow as a `Prompt`. */
export function promptOf(workflow: Workflow): JsonObject {
  const properties = (workflow.input.json.properties ?? {}) as JsonObject;
  const required = new Set((workflow.input.json.required ?? []) as readonly string[]);
  return {
    name: workflow.name,
    ...described(workflow),
    arguments: Object.entries(properties).map(([name, schema]) => {
      const { description } = schema as JsonObject;
      return { name, ...(typeof description === "string" && { description }), required: required.has(name) };
    }),
  };
}

/** A workflow as a `Resource` or a `ResourceTemplate`. */
export function resourceOf(workflow: Workflow): JsonObject {
  const { uri, mimeType } = workflow.kind as Extract<Workflow["kind"], { kind: "resource" }>;
  return {
    name: workflow.name,
    ...described(workflow),
    ...(isTemplate(uri) ? { uriTemplate: uri } : { uri }),
    ...(mimeType !== undefined && { mimeType }),
  };
}

export function isTemplate(uri: string): boolean {
  return uri.includes("{");
}

function described({ title, description }: Workflow): JsonObject {
  return { ...(title !== undefined && { title }), ...(description !== undefined && { description }) };
}

/**
 * Clients refuse structuredContent that does not fit the output schema, error results included, so the schema admits
 * what a plain call may be answered with besides the result.
 */
function admittingHandle(output: JsonObject): JsonObject {
  const { $schema, $defs, ...result } = output;
  return {
    ...($schema !== undefined && { $schema }),
    ...($defs !== undefined && { $defs }),
    type: "object",
    anyOf: [result, HANDLE_SCHEMA, FAILURE_SCHEMA],
  };
}
