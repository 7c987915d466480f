import { type Answer, isJsonObject, type Json, type JsonObject, type Question } from "@taskferry/core";
import { parseJson } from "./outcome.js";

/** How waiting states become questions. */
export interface QuestionOptions {
  /** The states that ask. @default every state that waits for a task token */
  readonly states?: readonly string[];
  /** Where the token is in the task's parameters, e.g. `MessageBody.taskToken`. @default any key `taskToken` or `TaskToken` */
  readonly tokenPath?: string;
  /** Where the question's text is. @default `message` beside the token */
  readonly messagePath?: string;
  /** Where the JSON Schema of the answer is. @default `schema` beside the token */
  readonly schemaPath?: string;
  /**
   * What an accepted answer gives to the state machine, at most 262,144 bytes of JSON.
   * @default the answer's content
   */
  readonly toOutput?: (
    answer: Answer,
    question: { readonly state: string; readonly parameters: Json },
  ) => Json;
}

/** What a waiting state's parameters say to the client, and to us. */
export interface Asked {
  readonly token: string;
  readonly message: string | undefined;
  readonly schema: JsonObject | undefined;
}

const TOKEN_KEYS = ["taskToken", "TaskToken"];
const PRIMITIVES = new Set(["string", "number", "integer", "boolean", "array"]);

/** Finds token, text and schema. `undefined` where there is no token: the state waits for somebody else. */
export function findAsked(parameters: Json, options: QuestionOptions): Asked | undefined {
  const holder =
    options.tokenPath === undefined ? findHolder(parameters) : at(parameters, parentOf(options.tokenPath));
  const token =
    options.tokenPath === undefined
      ? TOKEN_KEYS.map((key) => at(holder, key)).find((value) => typeof value === "string")
      : at(parameters, options.tokenPath);
  if (typeof token !== "string" || token === "") return undefined;
  return { token, ...findText(parameters, holder, options) };
}

/** Text and schema alone: an activity's token comes by another way. */
export function findText(
  parameters: Json,
  holder: Json | undefined,
  { messagePath, schemaPath }: QuestionOptions,
): Omit<Asked, "token"> {
  const message = messagePath === undefined ? at(holder, "message") : at(parameters, messagePath);
  const schema = schemaPath === undefined ? at(holder, "schema") : at(parameters, schemaPath);
  return { message: typeof message === "string" ? message : undefined, schema: flatSchema(schema) };
}

export function makeQuestion(
  key: string,
  machine: string,
  state: string,
  asked: Omit<Asked, "token">,
): Question {
  return {
    key,
    message: asked.message ?? `The workflow ${machine} waits for an answer in state "${state}".`,
    ...(asked.schema !== undefined && { schema: asked.schema }),
  };
}

/** The value at a dotted path. Strings that hold JSON are looked into: authors use `States.JsonToString`. */
export function at(value: Json | undefined, path: string): Json | undefined {
  let found = value;
  for (const name of path.replace(/^\$?\.?/, "").split(".")) {
    if (name === "") continue;
    const inner = typeof found === "string" ? parseJson(found) : found;
    found = typeof inner === "object" && inner !== null ? (inner as JsonObject)[name] : undefined;
  }
  return typeof found === "string" && found.startsWith("{") && path !== ""
    ? (parseJson(found) as Json)
    : found;
}

function parentOf(path: string): string {
  return path.includes(".") ? path.slice(0, path.lastIndexOf(".")) : "";
}

function findHolder(value: Json): JsonObject | undefined {
  const inner = typeof value === "string" && /^\s*[{[]/.test(value) ? parseJson(value) : value;
  if (typeof inner !== "object" || inner === null) return undefined;
  if (isJsonObject(inner) && TOKEN_KEYS.some((key) => typeof inner[key] === "string")) return inner;
  for (const child of Object.values(inner)) {
    const holder = findHolder(child);
    if (holder !== undefined) return holder;
  }
  return undefined;
}

/** MCP clients draw forms of flat objects only; another schema would be refused on the way. */
function flatSchema(schema: Json | undefined): JsonObject | undefined {
  if (!isJsonObject(schema) || schema.type !== "object" || !isJsonObject(schema.properties)) return undefined;
  const flat = Object.values(schema.properties).every(
    (property) =>
      isJsonObject(property) && (PRIMITIVES.has(String(property.type)) || Array.isArray(property.enum)),
  );
  return flat ? schema : undefined;
}
