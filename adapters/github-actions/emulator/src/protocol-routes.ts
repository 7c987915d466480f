/** What each route of GitHub's REST API does on the protocol server. Paths are those of GitHub's description. */
import { parse } from "yaml";
import { example } from "./openapi.js";
import {
  annotationObject,
  approvalObject,
  artifactObject,
  deploymentObject,
  fileObject,
  iso,
  jobObject,
  pendingObject,
  repositoryObject,
  runObject,
  web,
  workflowObject,
} from "./protocol-objects.js";
import {
  type AttemptRecord,
  latest,
  type ProtocolState,
  type RepositoryRecord,
  type RunRecord,
  type WorkflowRecord,
} from "./protocol-state.js";

/** How the server answers an accepted dispatch. */
export type DispatchMode =
  /** 200 and the run's id, if asked for it: github.com today. */
  | "details"
  /** 204 whatever is asked: the field is ignored. */
  | "silent"
  /** 422 for the field, 204 without it: an older Enterprise Server. */
  | "strict";

export interface Call {
  readonly origin: string;
  /** Where logs are kept. */
  readonly storage: string;
  readonly state: ProtocolState;
  readonly mode: DispatchMode;
  readonly apiVersion: string;
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly body: Record<string, unknown>;
}

export interface Answer {
  readonly status: number;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

interface RepositoryCall extends Call {
  readonly repository: RepositoryRecord;
}
interface RunCall extends RepositoryCall {
  readonly run: RunRecord;
}

type Handler = (call: Call) => Answer;

const REPO = "/repos/{owner}/{repo}";
const WORKFLOWS = `${REPO}/actions/workflows`;
const RUNS = `${REPO}/actions/runs`;

export function refusal(status: number, message: string): Answer {
  return {
    status,
    body: { message, documentation_url: "https://docs.github.com/rest", status: `${status}` },
  };
}

const notFound = (): Answer => refusal(404, "Not Found");

function inRepository(handle: (call: RepositoryCall) => Answer): Handler {
  return (call) => {
    const { owner, repo } = call.params;
    const repository = call.state.repositories.get(`${owner}/${repo}`.toLowerCase());
    return repository === undefined ? notFound() : handle({ ...call, repository });
  };
}

function ofRun(handle: (call: RunCall) => Answer): Handler {
  return inRepository((call) => {
    const run = call.state.find(call.repository, call.params["run_id"] ?? "");
    return run === undefined ? notFound() : handle({ ...call, run });
  });
}

function page<T>(call: Call, all: readonly T[]): readonly T[] {
  const size = Math.min(100, Number(call.query.get("per_page") ?? 30));
  const start = (Number(call.query.get("page") ?? 1) - 1) * size;
  return all.slice(start, start + size);
}

function workflowOf({ repository, params }: RepositoryCall): WorkflowRecord | undefined {
  const id = params["workflow_id"] ?? "";
  return repository.workflows.find(({ path, id: own }) => path.endsWith(`/${id}`) || String(own) === id);
}

function listRuns(call: RepositoryCall, workflow?: WorkflowRecord): Answer {
  const { query, state, repository, origin } = call;
  const created = query.get("created");
  const since = created?.startsWith(">=") === true ? Date.parse(created.slice(2)) : 0;
  const matching = state.runs
    .filter((run) => run.repository === repository && run.visible)
    .filter((run) => workflow === undefined || run.workflow === workflow)
    .filter((run) => [null, run.event].includes(query.get("event")))
    .filter((run) => [null, run.branch].includes(query.get("branch")))
    .filter((run) => [null, run.sha].includes(query.get("head_sha")))
    .filter((run) => Date.parse(iso(run.createdAtMs)) >= since)
    .toReversed();
  const workflow_runs = page(call, matching).map((run) => runObject(origin, run, latest(run)));
  return { status: 200, body: { total_count: matching.length, workflow_runs } };
}

function listJobs(call: RunCall, attempt: AttemptRecord | undefined): Answer {
  if (attempt === undefined) return notFound();
  const jobs = page(call, attempt.jobs).map((job) => jobObject(call.origin, call.run, attempt, job));
  return { status: 200, body: { total_count: attempt.jobs.length, jobs } };
}

function fileAt(repository: RepositoryRecord, path: string, ref: string): string | undefined {
  const name = ref.replace(/^refs\/(heads|tags)\//, "");
  return repository.branchFiles.get(`${name}:${path}`) ?? repository.files.get(path);
}

interface Declared {
  readonly required?: boolean;
  readonly default?: unknown;
}

function dispatch(call: RepositoryCall): Answer {
  const { repository, body, state, mode, origin } = call;
  const workflow = workflowOf(call);
  if (workflow === undefined) return notFound();
  if ("return_run_details" in body && (mode === "strict" || call.apiVersion >= "2026-03-10")) {
    return refusal(422, 'Invalid request.\n\n"return_run_details" is not a permitted key.');
  }
  const ref = String(body["ref"]).replace(/^refs\/(heads|tags)\//, "");
  if (!repository.branches.has(ref) && !repository.tags.has(ref)) {
    return refusal(422, `No ref found for: ${body["ref"]}`);
  }
  const file = parse(fileAt(repository, workflow.path, ref) ?? "") ?? {};
  const on = file.on ?? {};
  const names = typeof on === "string" ? [on] : Array.isArray(on) ? on : Object.keys(on);
  if (!names.includes("workflow_dispatch")) {
    return refusal(422, "Workflow does not have 'workflow_dispatch' trigger");
  }
  const declared: Record<string, Declared> = on.workflow_dispatch?.inputs ?? {};
  const given = (body["inputs"] ?? {}) as Record<string, string>;
  const unexpected = Object.keys(given).filter((name) => !Object.hasOwn(declared, name));
  if (unexpected.length > 0) return refusal(422, `Unexpected inputs provided: ${JSON.stringify(unexpected)}`);
  for (const [name, input] of Object.entries(declared)) {
    if (input.required === true && input.default === undefined && (given[name] ?? "") === "") {
      return refusal(422, `Required input '${name}' not provided`);
    }
  }
  const inputs = { ...given };
  const shown = /\$\{\{\s*(?:github\.event\.)?inputs\.([\w-]+)\s*\}\}/g;
  const title = String(file["run-name"] ?? workflow.name).replaceAll(shown, (_, name) => inputs[name] ?? "");
  const run = state.addRun(repository, { event: "workflow_dispatch", branch: ref, title, inputs, workflow });
  if (call.apiVersion < "2026-03-10" && (mode !== "details" || body["return_run_details"] !== true)) {
    return { status: 204 };
  }
  const run_url = `${origin}${RUNS.replace("{owner}", repository.owner).replace("{repo}", repository.name)}/${run.id}`;
  const html_url = `${web(origin, repository)}/actions/runs/${run.id}`;
  return { status: 200, body: { workflow_run_id: run.id, run_url, html_url } };
}

function cancel(kind: "cancel" | "force-cancel"): Handler {
  return ofRun(({ run, state }) => {
    if (latest(run).status === "completed") {
      return refusal(409, "Cannot cancel a workflow run that is completed.");
    }
    run.cancels.push(kind);
    if (kind === "force-cancel" || state.cancelEnds(run)) state.finish(run, "cancelled");
    return { status: 202, body: {} };
  });
}

function rerun(failedOnly: boolean): Handler {
  return ofRun(({ run, state }) => {
    const before = latest(run);
    if (before.status !== "completed") return refusal(403, "This workflow is already running");
    const attempt = state.addAttempt(run);
    if (failedOnly) attempt.jobs = before.jobs.filter((job) => job.conclusion === "success");
    return { status: 201, body: {} };
  });
}

function review(call: RunCall): Answer {
  const ids = (call.body["environment_ids"] as unknown[]).map(String);
  const reviewed = call.run.pending.filter(({ environmentId }) => ids.includes(String(environmentId)));
  if (reviewed.length === 0) return refusal(422, "There are no pending deployments for these environments");
  if (reviewed.some(({ mayApprove }) => !mayApprove))
    return refusal(403, "You may not review this deployment");
  const { state, comment } = call.body as { state: string; comment: string };
  for (const { environmentId, environment } of reviewed) {
    call.run.reviews.push({ environmentId, environment, state, comment });
  }
  call.run.pending = call.run.pending.filter((pending) => !reviewed.includes(pending));
  return { status: 200, body: reviewed.map(({ environment }) => deploymentObject(call.run, environment)) };
}

function jobLog(call: RepositoryCall): Answer {
  const job = call.state.findJob(call.repository, call.params["job_id"] ?? "");
  if (job === undefined || job.status !== "completed" || job.logLate) return notFound();
  if (job.log === null) return refusal(410, "Logs for this run have expired and are no longer available");
  return { status: 302, headers: { location: `${call.storage}/${job.id}` } };
}

/** Method and path, as in GitHub's description. */
export const ROUTES: Readonly<Record<string, Handler>> = {
  [`GET ${REPO}`]: inRepository(({ origin, repository }) => {
    return { status: 200, body: repositoryObject(origin, repository) };
  }),
  [`GET ${REPO}/installation`]: inRepository(({ origin }) => {
    const access_tokens_url = `${origin}/app/installations/42/access_tokens`;
    return { status: 200, body: { ...example("installation"), id: 42, access_tokens_url } };
  }),
  "POST /app/installations/{installation_id}/access_tokens": () => {
    const expires_at = new Date(Date.now() + 3_600_000).toISOString();
    return { status: 201, body: { ...example("installation-token"), token: "ghs_installation", expires_at } };
  },
  [`GET ${REPO}/contents/{path}`]: inRepository(({ origin, repository, params, query }) => {
    const path = params["path"] ?? "";
    const text = fileAt(repository, path, query.get("ref") ?? repository.defaultBranch);
    return text === undefined
      ? notFound()
      : { status: 200, body: fileObject(origin, repository, path, text) };
  }),
  [`GET ${WORKFLOWS}`]: inRepository((call) => {
    const { origin, repository } = call;
    const workflows = page(call, repository.workflows).map((one) => workflowObject(origin, repository, one));
    return { status: 200, body: { total_count: repository.workflows.length, workflows } };
  }),
  [`GET ${WORKFLOWS}/{workflow_id}`]: inRepository((call) => {
    const workflow = workflowOf(call);
    return workflow === undefined
      ? notFound()
      : { status: 200, body: workflowObject(call.origin, call.repository, workflow) };
  }),
  [`GET ${WORKFLOWS}/{workflow_id}/runs`]: inRepository((call) => {
    const workflow = workflowOf(call);
    return workflow === undefined ? notFound() : listRuns(call, workflow);
  }),
  [`POST ${WORKFLOWS}/{workflow_id}/dispatches`]: inRepository(dispatch),
  [`GET ${RUNS}`]: inRepository((call) => listRuns(call)),
  [`GET ${RUNS}/{run_id}`]: ofRun(({ origin, run }) => {
    return { status: 200, body: runObject(origin, run, latest(run)) };
  }),
  [`GET ${RUNS}/{run_id}/attempts/{attempt_number}`]: ofRun(({ origin, run, params }) => {
    const attempt = run.attempts[Number(params["attempt_number"]) - 1];
    return attempt === undefined ? notFound() : { status: 200, body: runObject(origin, run, attempt) };
  }),
  [`GET ${RUNS}/{run_id}/jobs`]: ofRun((call) => listJobs(call, latest(call.run))),
  [`GET ${RUNS}/{run_id}/attempts/{attempt_number}/jobs`]: ofRun((call) =>
    listJobs(call, call.run.attempts[Number(call.params["attempt_number"]) - 1]),
  ),
  [`GET ${RUNS}/{run_id}/artifacts`]: ofRun((call) => {
    const { origin, run } = call;
    const artifacts = page(call, run.artifacts).map((artifact) => artifactObject(origin, run, artifact));
    return { status: 200, body: { total_count: run.artifacts.length, artifacts } };
  }),
  [`GET ${REPO}/check-runs/{check_run_id}/annotations`]: inRepository((call) => {
    const job = call.state.findJob(call.repository, call.params["check_run_id"] ?? "");
    return job === undefined
      ? notFound()
      : { status: 200, body: page(call, job.annotations).map(annotationObject) };
  }),
  [`GET ${REPO}/actions/jobs/{job_id}/logs`]: inRepository(jobLog),
  [`GET ${RUNS}/{run_id}/pending_deployments`]: ofRun(({ origin, run }) => {
    return { status: 200, body: run.pending.map((pending) => pendingObject(origin, run, pending)) };
  }),
  [`POST ${RUNS}/{run_id}/pending_deployments`]: ofRun(review),
  [`GET ${RUNS}/{run_id}/approvals`]: ofRun(({ run }) => {
    return { status: 200, body: run.reviews.map(approvalObject) };
  }),
  [`POST ${RUNS}/{run_id}/approve`]: ofRun(({ run, repository, state }) => {
    if (!repository.mayPush) return refusal(403, "Must have write access to approve");
    run.approved = true;
    state.set(run, "queued");
    return { status: 201, body: {} };
  }),
  [`POST ${RUNS}/{run_id}/cancel`]: cancel("cancel"),
  [`POST ${RUNS}/{run_id}/force-cancel`]: cancel("force-cancel"),
  [`POST ${RUNS}/{run_id}/rerun`]: rerun(false),
  [`POST ${RUNS}/{run_id}/rerun-failed-jobs`]: rerun(true),
};
