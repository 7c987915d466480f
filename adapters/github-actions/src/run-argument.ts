import type { JsonObject } from "@taskferry/core";
import type { Repository } from "./api.js";
import { type ConnectionOptions, webOrigin } from "./client.js";
import { refused } from "./errors.js";
import type { RepositoryOptions } from "./options.js";
import type { Session } from "./session.js";
import { allowsRepository, repositoryOf } from "./target.js";
import { items, type Run, toRun } from "./wire.js";

type Options = ConnectionOptions & RepositoryOptions & { readonly workflow?: string | number };

/** A run that an argument names. */
export interface NamedRun {
  readonly repository: Repository;
  readonly run: Run;
  /** Which attempt, when the link names one. */
  readonly attempt: number | undefined;
}

/** JSON Schema properties of the ways to name a run. */
export const RUN_ARGUMENTS: JsonObject = {
  run: { type: "string", description: "The run's id, or the link to it." },
  branch: { type: "string", description: "Instead: the last run of this branch." },
  commit: { type: "string", description: "Instead: the last run of this commit (full SHA)." },
};

/** Finds the run that `run`, `branch` or `commit` names. Throws (`rejected`) when there is none, or it is not allowed. */
export async function namedRun(
  session: Session,
  options: Options,
  args: JsonObject,
  signal: AbortSignal,
): Promise<NamedRun> {
  const { run: named, branch, commit } = args;
  if ([named, branch, commit].filter((value) => value !== undefined && value !== null).length !== 1) {
    throw refused("InvalidInput", "Give one of `run`, `branch` and `commit`.");
  }
  if (typeof branch === "string") return lastRun(session, options, args, { branch }, signal);
  if (typeof commit === "string") {
    if (!/^[0-9a-f]{40,64}$/i.test(commit)) throw refused("InvalidInput", "`commit` must be a full SHA.");
    return lastRun(session, options, args, { head_sha: commit.toLowerCase() }, signal);
  }
  const link = typeof named === "string" ? parseLink(named, options) : undefined;
  const repository = link?.repository ?? repositoryOf(options, args);
  const runId = link?.runId ?? idOf(named);
  const run = await session.runs.read(repository, runId, signal);
  if (!isOfWorkflow(run, options.workflow)) {
    throw refused("RunNotAllowed", "This run is of another workflow.");
  }
  if (link?.attempt !== undefined && link.attempt > run.attempt) {
    throw refused("RunNotFound", "The run has no such attempt.");
  }
  return { repository, run, attempt: link?.attempt };
}

async function lastRun(
  session: Session,
  options: Options,
  args: JsonObject,
  filter: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<NamedRun> {
  const repository = repositoryOf(options, args);
  const { workflow } = options;
  const route =
    workflow === undefined
      ? "/repos/{owner}/{repo}/actions/runs"
      : "/repos/{owner}/{repo}/actions/workflows/{workflow_id}/runs";
  const parameters = {
    ...(workflow === undefined ? {} : { workflow_id: workflow }),
    ...filter,
    per_page: 30,
  };
  const pick = (data: unknown) => items(data, "workflow_runs").map(toRun);
  const runs = await session.api.get(repository, route, parameters, pick, signal);
  const [run] = runs.toSorted((a, b) => b.createdAtMs - a.createdAtMs || b.number - a.number);
  if (run === undefined) throw refused("RunNotFound", "There is no run of this branch or commit.");
  return { repository, run, attempt: undefined };
}

function isOfWorkflow(run: Run, workflow: string | number | undefined): boolean {
  if (workflow === undefined) return true;
  const file = run.path.replace(/@.*$/, "").replace(/^.*\//, "");
  return file === String(workflow).replace(/^.*\//, "") || run.workflowId === String(workflow);
}

interface RunLink {
  readonly repository: Repository;
  readonly runId: string;
  readonly attempt?: number;
}

/** `https://HOST/owner/name/actions/runs/123`, perhaps with `/attempts/2` or `/job/456`; `undefined`: not a link. */
function parseLink(text: string, options: Options): RunLink | undefined {
  if (!/^https?:\/\//i.test(text)) return undefined;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const match = /^\/([^/]+)\/([^/]+)\/actions\/runs\/(\d{1,20})(?:\/attempts\/(\d{1,6}))?(?:\/|$)/.exec(
    url?.pathname ?? "",
  );
  const [, owner, repo, runId, attempt] = match ?? [];
  if (url === undefined || owner === undefined || repo === undefined || runId === undefined) {
    throw refused("InvalidInput", "`run` is not a link to a GitHub Actions run.");
  }
  // With an Octokit of the user's own, its host is not known here.
  if (options.octokit === undefined && url.host !== new URL(webOrigin(options.baseUrl)).host) {
    throw refused("RunNotAllowed", "The link leads to another GitHub server.");
  }
  const repository = { owner, repo };
  if (!allowsRepository(options, repository)) {
    throw refused("RepositoryNotAllowed", "This repository is not on the list of allowed ones.");
  }
  return attempt === undefined ? { repository, runId } : { repository, runId, attempt: Number(attempt) };
}

function idOf(value: unknown): string {
  const text = typeof value === "number" && Number.isSafeInteger(value) ? String(value) : value;
  if (typeof text === "string" && /^\d{1,20}$/.test(text)) return text;
  throw refused("InvalidInput", "`run` must be a run's id or the link to it.");
}
