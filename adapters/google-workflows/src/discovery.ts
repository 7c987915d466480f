import { isJsonObject, type JsonObject } from "@taskferry/core";
import { type ConnectionOptions, connection } from "./connection.js";
import { parseJson } from "./execution.js";

/** Which workflows are looked for. */
export interface DiscoveryOptions extends ConnectionOptions {
  readonly project: string;
  /** A region, several, or `"-"` for all of them. */
  readonly location: string | readonly string[];
  /** An AIP-160 filter on Google's side, e.g. `'labels.mcp="true"'`. @default all workflows */
  readonly filter?: string;
  /** Input schemas by workflow id; they win over the workflow's description. */
  readonly inputSchemas?: Readonly<Record<string, JsonObject>>;
  readonly signal?: AbortSignal;
}

/** A deployed workflow. */
export interface DiscoveredWorkflow {
  /** Unique in the answer and fit for a tool name: the workflow's id, with its location behind it where ids repeat. */
  readonly name: string;
  readonly project: string;
  readonly location: string;
  readonly workflow: string;
  /** The description without the schema. */
  readonly description?: string;
  /** The JSON Schema of the argument: configured, or fenced in the description. */
  readonly inputSchema?: JsonObject;
  /** `"ACTIVE"`, or `"UNAVAILABLE"` (its KMS key cannot be used). */
  readonly state: string;
  readonly revision?: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** What was found, and where nobody answered. */
export interface Discovery {
  readonly workflows: readonly DiscoveredWorkflow[];
  /** Locations that could not be asked: what is there is missing from `workflows`. */
  readonly unreachable: readonly string[];
}

/** 10,000 workflows may be deployed in a project, 500 come on a page. */
const MAX_PAGES = 100;

/**
 * The workflows that are deployed in a project and location.
 *
 * @see https://cloud.google.com/workflows/docs/reference/rest/v1/projects.locations.workflows/list
 */
export async function discoverWorkflows(options: DiscoveryOptions): Promise<Discovery> {
  const found: Omit<DiscoveredWorkflow, "name">[] = [];
  const unreachable = new Set<string>();
  const { project, location, filter, signal = new AbortController().signal } = options;
  const api = connection(options);
  for (const place of typeof location === "string" ? [location] : location) {
    let pageToken = "";
    for (let page = 0; page === 0 || (pageToken !== "" && page < MAX_PAGES); page++) {
      const answer = await api.rest({
        method: "GET",
        url: `${api.workflowsUrl}/v1/projects/${project}/locations/${place}/workflows`,
        query: {
          pageSize: "500",
          ...(filter !== undefined && { filter }),
          ...(pageToken !== "" && { pageToken }),
        },
        signal,
      });
      const fields = isJsonObject(answer) ? answer : {};
      for (const workflow of list(fields["workflows"])) {
        const parsed = parseWorkflow(workflow, options);
        if (parsed !== undefined) found.push(parsed);
      }
      for (const where of list(fields["unreachable"])) if (typeof where === "string") unreachable.add(where);
      pageToken = typeof fields["nextPageToken"] === "string" ? fields["nextPageToken"] : "";
    }
  }
  return { workflows: withNames(found), unreachable: [...unreachable] };
}

const FENCE = /```(?:json)?[^\S\n]*\n([\s\S]*?)```/g;

/**
 * Splits a description into words and the JSON Schema that is fenced in it (a block of ``` or ```json that holds an
 * object schema). A description may have 1,000 characters, so larger schemas are configured instead.
 */
export function parseDescription(text: string): {
  readonly description: string;
  readonly inputSchema?: JsonObject;
} {
  for (const [block, inside] of text.matchAll(FENCE)) {
    const schema = parseJson(inside ?? "");
    if (!isJsonObject(schema) || (schema["type"] !== "object" && !isJsonObject(schema["properties"])))
      continue;
    return { description: text.replace(block, "").trim(), inputSchema: { type: "object", ...schema } };
  }
  return { description: text.trim() };
}

function parseWorkflow(
  value: unknown,
  options: DiscoveryOptions,
): Omit<DiscoveredWorkflow, "name"> | undefined {
  if (!isJsonObject(value) || typeof value["name"] !== "string") return undefined;
  const [, , , location, , workflow] = value["name"].split("/");
  if (!location || !workflow) return undefined;
  const { description: text, state, revisionId, labels } = value;
  const { description, inputSchema } = parseDescription(typeof text === "string" ? text : "");
  const schema = options.inputSchemas?.[workflow] ?? inputSchema;
  return {
    // The project as it was asked for: Google may answer with its number.
    project: options.project,
    location,
    workflow,
    ...(description !== "" && { description }),
    ...(schema !== undefined && { inputSchema: schema }),
    state: typeof state === "string" ? state : "STATE_UNSPECIFIED",
    ...(typeof revisionId === "string" && { revision: revisionId }),
    labels: isJsonObject(labels) ? (labels as Record<string, string>) : {},
  };
}

/** Ids are unique in a location only, and hosts take tool names of at most 64 characters of `[A-Za-z0-9_-]`. */
function withNames(found: readonly Omit<DiscoveredWorkflow, "name">[]): readonly DiscoveredWorkflow[] {
  const count = (id: string) => found.filter(({ workflow }) => workflow === id).length;
  const taken = new Set(found.map(({ workflow }) => workflow).filter((id) => count(id) === 1));
  return found.map((workflow) => {
    if (count(workflow.workflow) === 1) return { name: workflow.workflow, ...workflow };
    const located = `${workflow.workflow.slice(0, 63 - workflow.location.length)}_${workflow.location}`;
    let name = located;
    for (let n = 2; taken.has(name); n++) name = `${located.slice(0, 60)}_${n}`;
    taken.add(name);
    return { name, ...workflow };
  });
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
