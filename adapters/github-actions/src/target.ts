import { isJsonObject, type Json, type JsonObject } from "@taskferry/core";
import type { Repository } from "./api.js";
import { refused } from "./errors.js";
import type { RepositoryOptions } from "./options.js";

/** The argument that names the repository, where more than one is allowed. */
export const REPOSITORY_ARGUMENT = "repository";
/** The argument that names the branch or tag, where more than one is allowed. */
export const REF_ARGUMENT = "git_ref";

const NAME = /^[A-Za-z0-9._-]{1,100}$/;

/** An input's object. No input at all is an empty one. */
export function argumentsOf(input: Json): JsonObject {
  if (isJsonObject(input)) return input;
  if (input === null) return {};
  throw refused("InvalidInput", "The input must be an object.");
}

/** The repository that a call is about. Throws (`rejected`) if it is not one that is allowed. */
export function repositoryOf(options: RepositoryOptions, args: JsonObject): Repository {
  if (options.repositories === undefined) {
    if (options.owner === undefined || options.repo === undefined) {
      throw new TypeError("Give `owner` and `repo`, or `repositories`.");
    }
    return { owner: options.owner, repo: options.repo };
  }
  const named = args[REPOSITORY_ARGUMENT] ?? onlyOf(options.repositories);
  if (typeof named !== "string") {
    throw refused("MissingRepository", `Say which \`${REPOSITORY_ARGUMENT}\` (owner/name).`);
  }
  const [owner = "", repo = "", ...rest] = named.split("/");
  // "." and ".." would climb out of the API's path.
  if (rest.length > 0 || !NAME.test(owner) || !NAME.test(repo) || /^\.+$/.test(owner) || /^\.+$/.test(repo)) {
    throw refused("InvalidRepository", `\`${REPOSITORY_ARGUMENT}\` must be owner/name.`);
  }
  if (!isAllowed(options.repositories, named, "i")) {
    throw refused("RepositoryNotAllowed", "This repository is not on the list of allowed ones.");
  }
  return { owner, repo };
}

/** Whether a repository, named by a link or an event, is one that is allowed. */
export function allowsRepository(options: RepositoryOptions, repository: Repository): boolean {
  const name = `${repository.owner}/${repository.repo}`;
  return isAllowed(options.repositories ?? [`${options.owner}/${options.repo}`], name, "i");
}

/** The branch or tag that a call names; `undefined`: the repository's default branch. */
export function refOf(
  options: { readonly ref?: string; readonly refs?: readonly string[] },
  args: JsonObject,
): string | undefined {
  const named = options.refs === undefined ? undefined : args[REF_ARGUMENT];
  if (named === undefined || named === null) return options.ref ?? onlyOf(options.refs ?? []);
  if (typeof named !== "string" || named === "") {
    throw refused("InvalidRef", `\`${REF_ARGUMENT}\` must name a branch or tag.`);
  }
  const short = shortRef(named);
  if (!isAllowed(options.refs ?? [], short, "")) {
    throw refused("RefNotAllowed", "This branch or tag is not on the list of allowed ones.");
  }
  return short;
}

/** `refs/heads/main` → `main`: what a run's `head_branch` says. */
export function shortRef(ref: string): string {
  return ref.replace(/^refs\/(?:heads|tags)\//, "");
}

/** The value that a list of patterns leaves no choice about. */
function onlyOf(patterns: readonly string[]): string | undefined {
  const [first] = patterns;
  return patterns.length === 1 && first !== undefined && !first.includes("*") ? first : undefined;
}

function isAllowed(patterns: readonly string[], name: string, flags: "" | "i"): boolean {
  return patterns.some((pattern) => {
    const source = pattern.split("*").map((part) => part.replace(/[.+?^${}()|[\]\\]/g, "\\$&"));
    return new RegExp(`^${source.join("[^/]*")}$`, flags).test(name);
  });
}

/** JSON Schema properties of the arguments that are open. */
export function targetProperties(
  options: RepositoryOptions & { readonly ref?: string; readonly refs?: readonly string[] },
): { readonly properties: JsonObject; readonly required: readonly string[] } {
  const properties: Record<string, Json> = {};
  const required: string[] = [];
  if (options.repositories !== undefined) {
    properties[REPOSITORY_ARGUMENT] = choice("The repository, as owner/name.", options.repositories);
    if (onlyOf(options.repositories) === undefined) required.push(REPOSITORY_ARGUMENT);
  }
  if (options.refs !== undefined) {
    properties[REF_ARGUMENT] = choice("The branch or tag to run on.", options.refs);
  }
  return { properties, required };
}

function choice(description: string, patterns: readonly string[]): JsonObject {
  return patterns.some((pattern) => pattern.includes("*"))
    ? { type: "string", description: `${description} Allowed: ${patterns.join(", ")}` }
    : { type: "string", description, enum: [...patterns] };
}
