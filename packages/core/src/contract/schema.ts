import { z } from "zod";
import type { WorkflowErrorCode } from "./errors.js";
import { WorkflowError } from "./errors.js";
import { isJsonObject, type JsonObject } from "./json.js";

/** A zod object schema, or the same as JSON Schema (from a discovery, a configuration file). */
export type ObjectSchema = z.ZodType | JsonObject;

/** A schema in both forms: to check with, and to advertise. */
export interface CompiledSchema {
  readonly zod: z.ZodType;
  /** JSON Schema 2020-12 with `type: "object"` at its root. */
  readonly json: JsonObject;
}

/** The schema of a tool that takes nothing. */
export const EMPTY_OBJECT_SCHEMA: JsonObject = {
  type: "object",
  properties: {},
  additionalProperties: false,
};

/**
 * @param what for the error message, e.g. `input of workflow "deploy"`
 * @throws WorkflowError `configuration` if it is not an object schema that JSON Schema can express.
 */
export function compileSchema(schema: ObjectSchema, io: "input" | "output", what: string): CompiledSchema {
  try {
    const compiled =
      schema instanceof z.ZodType
        ? { zod: schema, json: z.toJSONSchema(schema, { io }) as unknown as JsonObject }
        : { zod: z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0]), json: schema };
    if (compiled.json.type !== "object")
      throw new Error(`its root type is ${JSON.stringify(compiled.json.type ?? null)}`);
    return compiled;
  } catch (cause) {
    throw new WorkflowError(
      "configuration",
      `The ${what} must be an object schema that JSON Schema can express: ${(cause as Error).message}`,
      { cause },
    );
  }
}

/** Checks a value. @throws WorkflowError with this code and one line per problem, naming paths but no values. */
export function checkAgainst(
  schema: CompiledSchema,
  value: unknown,
  code: WorkflowErrorCode,
  what: string,
): JsonObject {
  const parsed = schema.zod.safeParse(value);
  if (parsed.success && isJsonObject(parsed.data)) return parsed.data;
  const problems = parsed.success ? ["not an object"] : parsed.error.issues.slice(0, 10).map(describeIssue);
  throw new WorkflowError(code, `Invalid ${what}: ${problems.join("; ")}`);
}

function describeIssue(issue: z.core.$ZodIssue): string {
  const path = issue.path.map(String).join(".");
  return path === "" ? issue.message : `${path}: ${issue.message}`;
}
