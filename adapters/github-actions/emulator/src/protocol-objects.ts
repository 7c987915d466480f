/** GitHub's JSON of what the protocol server knows: GitHub's own examples with our values. */
import { example } from "./openapi.js";
import type {
  AttemptRecord,
  JobRecord,
  PendingRecord,
  RepositoryRecord,
  ReviewRecord,
  RunRecord,
  WorkflowRecord,
} from "./protocol-state.js";

type Wire = Record<string, unknown>;

const RUN = example("workflow-run");
const JOB = example("job");
const WORKFLOW = example("workflow");
const FULL_REPOSITORY = withLanguage(example("full-repository-default-response"));
const PENDING = (example("pending-deployment-items") as unknown as Wire[])[0] as Wire;
const APPROVAL = (example("environment-approvals-items") as unknown as Wire[])[0] as Wire;
const ANNOTATION = (example("check-annotation-items") as unknown as Wire[])[0] as Wire;
const ARTIFACT = (example("artifact-paginated")["artifacts"] as Wire[])[0] as Wire;
const FILE = example("content-file-response-if-content-is-a-file");

/** Required, and missing in the example and in the repositories that it holds. */
function withLanguage(repository: Wire): Wire {
  const inner = ["source", "parent", "template_repository"].filter((name) => name in repository);
  const filled = inner.map((name) => [name, { language: null, ...(repository[name] as Wire) }]);
  return { language: null, ...repository, ...Object.fromEntries(filled) };
}

export function iso(timeMs: number): string {
  return new Date(timeMs).toISOString().replace(/\.\d+Z$/, "Z");
}

function api(origin: string, repository: RepositoryRecord): string {
  return `${origin}/repos/${repository.owner}/${repository.name}`;
}

export function web(origin: string, repository: RepositoryRecord): string {
  return `${origin}/${repository.owner}/${repository.name}`;
}

function owner(origin: string, repository: RepositoryRecord): Wire {
  return { ...(RUN["actor"] as Wire), login: repository.owner, html_url: `${origin}/${repository.owner}` };
}

export function runObject(origin: string, run: RunRecord, attempt: AttemptRecord): Wire {
  const { repository } = run;
  const url = `${api(origin, repository)}/actions/runs/${run.id}`;
  const isLatest = attempt === run.attempts.at(-1);
  const html = `${web(origin, repository)}/actions/runs/${run.id}`;
  const minimal = {
    ...(RUN["repository"] as Wire),
    name: repository.name,
    full_name: `${repository.owner}/${repository.name}`,
    owner: owner(origin, repository),
    html_url: web(origin, repository),
  };
  return {
    ...RUN,
    id: run.id,
    name: run.workflow.name,
    path: run.workflow.path,
    display_title: run.title,
    run_number: run.number,
    run_attempt: attempt.number,
    event: run.event,
    status: attempt.status,
    conclusion: attempt.conclusion,
    head_branch: run.branch,
    head_sha: run.sha,
    workflow_id: run.workflow.id,
    url,
    html_url: isLatest ? html : `${html}/attempts/${attempt.number}`,
    created_at: iso(run.createdAtMs),
    run_started_at: iso(attempt.startedAtMs),
    updated_at: iso(attempt.updatedAtMs),
    jobs_url: `${url}/jobs`,
    logs_url: `${url}/logs`,
    artifacts_url: `${url}/artifacts`,
    cancel_url: `${url}/cancel`,
    rerun_url: `${url}/rerun`,
    repository: minimal,
    head_repository: minimal,
  };
}

export function jobObject(origin: string, run: RunRecord, attempt: AttemptRecord, job: JobRecord): Wire {
  const base = api(origin, run.repository);
  return {
    ...JOB,
    id: job.id,
    run_id: run.id,
    run_url: `${base}/actions/runs/${run.id}`,
    run_attempt: attempt.number,
    head_sha: run.sha,
    head_branch: run.branch,
    workflow_name: run.workflow.name,
    name: job.name,
    url: `${base}/actions/jobs/${job.id}`,
    html_url: `${web(origin, run.repository)}/actions/runs/${run.id}/job/${job.id}`,
    check_run_url: `${base}/check-runs/${job.id}`,
    status: job.status,
    conclusion: job.conclusion,
    created_at: iso(job.startedAtMs),
    started_at: iso(job.startedAtMs),
    completed_at: job.completedAtMs === null ? null : iso(job.completedAtMs),
    steps: job.steps.map((step, index) => ({
      ...step,
      number: index + 1,
      started_at: iso(job.startedAtMs),
      completed_at: step.status === "completed" ? iso(job.startedAtMs) : null,
    })),
  };
}

export function workflowObject(origin: string, repository: RepositoryRecord, workflow: WorkflowRecord): Wire {
  return {
    ...WORKFLOW,
    id: workflow.id,
    name: workflow.name,
    path: workflow.path,
    state: workflow.state,
    url: `${api(origin, repository)}/actions/workflows/${workflow.id}`,
    html_url: `${web(origin, repository)}/blob/${repository.defaultBranch}/${workflow.path}`,
  };
}

export function repositoryObject(origin: string, repository: RepositoryRecord): Wire {
  return {
    ...FULL_REPOSITORY,
    name: repository.name,
    full_name: `${repository.owner}/${repository.name}`,
    owner: owner(origin, repository),
    html_url: web(origin, repository),
    default_branch: repository.defaultBranch,
    permissions: { admin: false, maintain: false, push: repository.mayPush, triage: true, pull: true },
  };
}

export function pendingObject(origin: string, run: RunRecord, pending: PendingRecord): Wire {
  const base = api(origin, run.repository);
  const [sample] = PENDING["reviewers"] as Wire[];
  return {
    ...PENDING,
    environment: {
      ...(PENDING["environment"] as Wire),
      id: pending.environmentId,
      name: pending.environment,
      url: `${base}/environments/${pending.environment}`,
    },
    wait_timer: pending.waitTimer,
    wait_timer_started_at: pending.waitTimer > 0 ? iso(run.createdAtMs) : null,
    current_user_can_approve: pending.mayApprove,
    reviewers: pending.reviewers.map((login) => ({
      ...sample,
      reviewer: { ...(sample?.["reviewer"] as Wire), login },
    })),
  };
}

export function approvalObject(review: ReviewRecord): Wire {
  const [environment] = APPROVAL["environments"] as Wire[];
  return {
    ...APPROVAL,
    state: review.state,
    comment: review.comment,
    environments: [{ ...environment, id: review.environmentId, name: review.environment }],
  };
}

export function deploymentObject(run: RunRecord, environment: string): Wire {
  const [sample] = example("deployment-items") as unknown as Wire[];
  return { ...sample, environment, sha: run.sha, ref: run.branch };
}

export function annotationObject(annotation: Wire): Wire {
  return { ...ANNOTATION, ...annotation };
}

export function artifactObject(
  origin: string,
  run: RunRecord,
  artifact: { readonly id: bigint; readonly name: string; readonly expired: boolean },
): Wire {
  const url = `${api(origin, run.repository)}/actions/artifacts/${artifact.id}`;
  return { ...ARTIFACT, ...artifact, url, archive_download_url: `${url}/zip` };
}

export function fileObject(origin: string, repository: RepositoryRecord, path: string, text: string): Wire {
  const url = `${api(origin, repository)}/contents/${path}`;
  // GitHub breaks base64 into lines.
  const content = Buffer.from(text)
    .toString("base64")
    .replace(/(.{60})/g, "$1\n");
  const name = path.replace(/^.*\//, "");
  return { ...FILE, name, path, size: Buffer.byteLength(text), content, url };
}
