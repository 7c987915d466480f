/** GitHub's own description of its REST API, to check what the protocol server answers. */
import { createRequire } from "node:module";
import { Ajv, type AnySchemaObject, type ValidateFunction } from "ajv";
import addFormats from "ajv-formats";

interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation | undefined>>>>;
  readonly components: {
    readonly examples: Readonly<Record<string, { readonly value: unknown }>>;
    readonly parameters: Readonly<Record<string, { readonly schema: { readonly enum?: readonly string[] } }>>;
  };
}

interface Operation {
  readonly responses: Readonly<Record<string, AnySchemaObject>>;
  readonly requestBody?: AnySchemaObject;
}

const document: OpenApi = createRequire(import.meta.url)("@octokit/openapi/generated/api.github.com.json");
admitNull(document);

// OpenAPI 3.0 has keywords and formats of its own, and Ajv would warn about each of them.
const ajv = new Ajv({ strict: false, logger: false, validateSchema: false });
addFormats.default(ajv);
ajv.addSchema(document, "github");

const compiled = new Map<string, ValidateFunction | undefined>();

/** What OpenAPI 3.0 calls `nullable`, in words of JSON Schema where Ajv does not do it by itself. */
function admitNull(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  for (const inner of Object.values(value)) admitNull(inner);
  const schema = value as Record<string, unknown>;
  if (schema["nullable"] !== true) return;
  const { enum: words, anyOf, oneOf, allOf } = schema;
  if (Array.isArray(words) && !words.includes(null)) words.push(null);
  if (schema["type"] !== undefined) return;
  delete schema["nullable"];
  if (Array.isArray(anyOf ?? oneOf)) ((anyOf ?? oneOf) as unknown[]).push({ type: "null" });
  if (Array.isArray(allOf)) {
    delete schema["allOf"];
    schema["anyOf"] = [{ allOf }, { type: "null" }];
  }
}

/** GitHub's example of a component, to be changed freely. */
export function example(name: string): Record<string, unknown> {
  return structuredClone(document.components.examples[name]?.value) as Record<string, unknown>;
}

/** What is wrong with a JSON answer; `undefined`: nothing. */
export function answerProblem(
  method: string,
  path: string,
  status: number,
  body: unknown,
): string | undefined {
  return problem(`${method} ${path} → ${status}`, responsePointer(method, path, status), body);
}

/** What is wrong with a JSON request; `undefined`: nothing. */
export function requestProblem(method: string, path: string, body: unknown): string | undefined {
  const operation = document.paths[path]?.[method.toLowerCase()];
  if (operation?.requestBody === undefined) return undefined;
  const pointer = `/paths/${escaped(path)}/${method.toLowerCase()}/requestBody/content/application~1json/schema`;
  return problem(`body of ${method} ${path}`, pointer, body);
}

function problem(what: string, pointer: string | undefined, body: unknown): string | undefined {
  if (pointer === undefined) return `${what}: not in GitHub's description`;
  if (!compiled.has(pointer)) compiled.set(pointer, ajv.compile({ $ref: `github#${pointer}` }));
  const validate = compiled.get(pointer);
  return validate?.(body) === true ? undefined : `${what}: ${ajv.errorsText(validate?.errors)}`;
}

/** Where the schema of an answer is. Errors that GitHub does not list for an operation look like all its errors. */
function responsePointer(method: string, path: string, status: number): string | undefined {
  const operation = document.paths[path]?.[method.toLowerCase()];
  if (operation === undefined) return undefined;
  const response = operation.responses[String(status)];
  if (response === undefined || status >= 400) {
    return status >= 400 ? "/components/schemas/basic-error" : undefined;
  }
  const at = `/paths/${escaped(path)}/${method.toLowerCase()}/responses/${status}`;
  const content = response["content"] as Record<string, { schema: AnySchemaObject }> | undefined;
  return content?.["application/json"] === undefined ? undefined : `${at}/content/application~1json/schema`;
}

function escaped(part: string): string {
  return encodeURIComponent(part.replaceAll("~", "~0").replaceAll("/", "~1")).replaceAll("%7E", "~");
}

/** The words that GitHub lists for the `status` filter of runs: statuses and conclusions together. */
export function statusWords(): readonly string[] {
  return document.components.parameters["workflow-run-status"]?.schema.enum ?? [];
}
