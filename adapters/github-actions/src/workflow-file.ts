import type { JsonObject } from "@taskferry/core";
import { GitHubApi, type Repository } from "./api.js";
import { type ConnectionOptions, clientsOf } from "./client.js";
import { refused, statusOf } from "./errors.js";
import { type DispatchTrigger, dispatchTrigger, inputsSchema } from "./inputs.js";
import type { GitHubActionsOptions, RepositoryOptions } from "./options.js";
import { argumentsOf, REF_ARGUMENT, refOf, repositoryOf, targetProperties } from "./target.js";
import { fields, toRepositoryInfo } from "./wire.js";

export const DEFAULT_API_VERSION = "2022-11-28";
export const DEFAULT_CORRELATION_INPUT = "taskferry_id";
const MAX_WORKFLOWS = 1000;

/** A workflow that can be dispatched. */
export interface WorkflowDescription {
  /** The file's name, as {@link GitHubActionsOptions.workflow} takes it. */
  readonly workflow: string;
  readonly name: string;
  readonly path: string;
  readonly url: string;
  /** JSON Schema of the tool's arguments: the workflow's inputs, and what else is open. */
  readonly inputSchema: JsonObject;
  /** Whether a run can be told by a correlation input even when GitHub tells no run id. */
  readonly correlated: boolean;
}

interface Listed {
  readonly id: string;
  readonly name: string;
  readonly path: string;
  readonly state: string;
  readonly url: string;
}

/** A new door to GitHub for a connection. */
export function apiOf(options: ConnectionOptions): GitHubApi {
  const { auth, octokit, apiVersion = DEFAULT_API_VERSION } = options;
  const limitPerOwner =
    octokit === undefined && typeof auth === "object" && auth.installationId === undefined;
  return new GitHubApi(clientsOf(options), { apiVersion, limitPerOwner });
}

/** The name by which a run of this workflow can be told, or `undefined`. */
export function correlationInputOf(
  option: string | false | undefined,
  trigger: DispatchTrigger | undefined,
): string | undefined {
  const name = option ?? DEFAULT_CORRELATION_INPUT;
  if (name === false || trigger === undefined || !Object.hasOwn(trigger.inputs, name)) return undefined;
  return trigger.shownInputs.includes(name) ? name : undefined;
}

/** The branch or tag of a call: the one that is named, else the repository's default branch. */
export async function resolveRef(
  api: GitHubApi,
  repository: Repository,
  named: string | undefined,
  signal: AbortSignal,
): Promise<string> {
  if (named !== undefined) return named;
  return (await api.get(repository, "/repos/{owner}/{repo}", {}, toRepositoryInfo, signal)).defaultBranch;
}

/**
 * The dispatch trigger in the workflow's file at a ref; `undefined` when the file cannot be read (no permission,
 * a dynamic workflow). A file without the trigger is an error: GitHub would refuse the dispatch.
 */
export async function readTrigger(
  api: GitHubApi,
  repository: Repository,
  workflow: string | number,
  ref: string,
  signal: AbortSignal,
): Promise<DispatchTrigger | undefined> {
  try {
    const path = await pathOf(api, repository, workflow, signal);
    const text = await readFile(api, repository, path, ref, signal);
    const trigger = dispatchTrigger(text);
    if (trigger !== undefined) return trigger;
  } catch (error) {
    const status = statusOf(error);
    if (status === 403 || status === 404) return undefined;
    throw error;
  }
  throw refused(
    "NotDispatchable",
    "The workflow has no workflow_dispatch trigger at this ref: add it to the file's `on:`.",
  );
}

async function pathOf(
  api: GitHubApi,
  repository: Repository,
  workflow: string | number,
  signal: AbortSignal,
): Promise<string> {
  if (/\.ya?ml$/.test(String(workflow))) return `.github/workflows/${String(workflow).replace(/^.*\//, "")}`;
  const route = "/repos/{owner}/{repo}/actions/workflows/{workflow_id}";
  return (await api.get(repository, route, { workflow_id: workflow }, toListed, signal)).path;
}

function readFile(
  api: GitHubApi,
  repository: Repository,
  path: string,
  ref: string,
  signal: AbortSignal,
): Promise<string> {
  return api.get(repository, "/repos/{owner}/{repo}/contents/{+path}", { path, ref }, contentOf, signal);
}

function contentOf(data: unknown): string {
  const file = fields(data);
  return Buffer.from(String(file["content"] ?? ""), "base64").toString("utf8");
}

function toListed(data: unknown): Listed {
  const workflow = fields(data);
  return {
    id: String(workflow["id"]),
    name: String(workflow["name"]),
    path: String(workflow["path"]),
    state: String(workflow["state"]),
    url: String(workflow["html_url"]),
  };
}

/**
 * Describes the workflow that {@link githubActions} would run with the same options: name and JSON Schema of its
 * arguments, for the tool's definition. With an open repository, the first allowed one without `*` is read.
 * @throws EngineError, or what Octokit throws.
 */
export async function describeWorkflow(
  options: GitHubActionsOptions,
  signal: AbortSignal = AbortSignal.timeout(30_000),
): Promise<WorkflowDescription> {
  const api = apiOf(options);
  const repository = sampleRepository(options);
  const ref = await resolveRef(api, repository, refOf(options, {}) ?? sampleRef(options), signal);
  const route = "/repos/{owner}/{repo}/actions/workflows/{workflow_id}";
  const listed = await api.get(repository, route, { workflow_id: options.workflow }, toListed, signal);
  const trigger = await readTrigger(api, repository, options.workflow, ref, signal);
  return describe(options, listed, trigger);
}

/**
 * The workflows of a repository that can be dispatched, for a server that offers them all.
 * @throws EngineError, or what Octokit throws.
 */
export async function discoverWorkflows(
  options: ConnectionOptions &
    RepositoryOptions &
    Pick<GitHubActionsOptions, "ref" | "refs" | "correlationInput">,
  signal: AbortSignal = AbortSignal.timeout(60_000),
): Promise<readonly WorkflowDescription[]> {
  const api = apiOf(options);
  const repository = sampleRepository(options);
  const ref = await resolveRef(api, repository, refOf(options, {}) ?? sampleRef(options), signal);
  const route = "/repos/{owner}/{repo}/actions/workflows";
  const all = await api.list(
    repository,
    route,
    { name: "workflows", max: MAX_WORKFLOWS },
    {},
    toListed,
    signal,
  );
  const found: WorkflowDescription[] = [];
  for (const listed of all.items) {
    // "dynamic/…" are GitHub's own (Pages, Dependabot): they have no file.
    if (listed.state !== "active" || !listed.path.startsWith(".github/workflows/")) continue;
    const text = await readFile(api, repository, listed.path, ref, signal).catch((error: unknown) => {
      if (statusOf(error) === 404) return undefined;
      throw error;
    });
    const trigger = text === undefined ? undefined : triggerOrNone(text);
    if (trigger !== undefined) found.push(describe(options, listed, trigger));
  }
  return found;
}

/** One broken file must not hide the other workflows. */
function triggerOrNone(text: string): DispatchTrigger | undefined {
  try {
    return dispatchTrigger(text);
  } catch {
    return undefined;
  }
}

function describe(
  options: RepositoryOptions & Pick<GitHubActionsOptions, "ref" | "refs" | "correlationInput" | "inputs">,
  listed: Listed,
  trigger: DispatchTrigger | undefined,
): WorkflowDescription {
  const correlation = correlationInputOf(options.correlationInput, trigger);
  const inputs = options.inputs ?? trigger?.inputs;
  const target = targetProperties(options);
  for (const name of Object.keys(target.properties)) {
    if (inputs !== undefined && Object.hasOwn(inputs, name)) {
      throw refused(
        "NameTaken",
        `The workflow has an input named "${name}", which Taskferry needs for itself.`,
      );
    }
  }
  const own = inputsSchema(inputs ?? {}, correlation === undefined ? [] : [correlation]);
  const required = [...target.required, ...((own["required"] as readonly string[] | undefined) ?? [])];
  return {
    workflow: listed.path.replace(/^.*\//, ""),
    name: listed.name,
    path: listed.path,
    url: listed.url,
    correlated: correlation !== undefined,
    inputSchema: {
      type: "object",
      properties: { ...target.properties, ...(own["properties"] as JsonObject) },
      ...(required.length > 0 ? { required } : {}),
      // Inputs that could not be read are not forbidden.
      additionalProperties: inputs === undefined,
    },
  };
}

function sampleRepository(options: RepositoryOptions): Repository {
  const sample = options.repositories?.find((pattern) => !pattern.includes("*"));
  return repositoryOf(options, argumentsOf(sample === undefined ? {} : { repository: sample }));
}

function sampleRef(options: { readonly refs?: readonly string[] }): string | undefined {
  const sample = options.refs?.find((pattern) => !pattern.includes("*"));
  return sample === undefined ? undefined : refOf(options, { [REF_ARGUMENT]: sample });
}
