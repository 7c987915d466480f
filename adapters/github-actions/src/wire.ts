/**
 * The parts of GitHub's REST objects that this adapter uses, picked and normalised in one place.
 *
 * Ids are strings here: GitHub's are 64-bit, Octokit hands those above 2^53 out as `bigint`, and
 * neither `JSON.stringify` nor a double can carry them.
 */

/** A workflow run: https://docs.github.com/rest/actions/workflow-runs */
export interface Run {
  readonly id: string;
  readonly attempt: number;
  readonly status: string | null;
  readonly conclusion: string | null;
  /** What `run-name` made, or the event's own title. */
  readonly title: string;
  readonly workflow: string;
  readonly workflowId: string;
  readonly path: string;
  readonly event: string;
  readonly branch: string | null;
  readonly sha: string;
  readonly url: string;
  readonly number: number;
  readonly createdAtMs: number;
  /** When this attempt began. */
  readonly startedAtMs: number;
  /** When anything last changed: for a completed run, about when it ended. */
  readonly updatedAtMs: number;
}

/** A job of a run: https://docs.github.com/rest/actions/workflow-jobs */
export interface Job {
  readonly id: string;
  /** The check run that holds the job's annotations. */
  readonly checkRunId: string;
  readonly name: string;
  readonly status: string;
  readonly conclusion: string | null;
  readonly startedAt: string | null;
  readonly completedAt: string | null;
  readonly url: string | null;
  readonly steps: readonly Step[];
}

/** A step of a job. */
export interface Step {
  readonly number: number;
  readonly name: string;
  readonly status: string;
  readonly conclusion: string | null;
}

/** What is asked about a repository. */
export interface RepositoryInfo {
  readonly defaultBranch: string;
  /** Whether this identity may write; `undefined` where the server does not say. */
  readonly mayPush: boolean | undefined;
}

/** One environment that a run waits for: `GET …/pending_deployments`. */
export interface PendingDeployment {
  readonly environmentId: string;
  readonly environment: string;
  readonly mayApprove: boolean;
  readonly waitTimerMinutes: number;
  readonly reviewers: readonly string[];
}

/** An annotation of a check run. */
export interface Annotation {
  readonly level: string;
  readonly title: string | null;
  readonly message: string;
  readonly path: string;
  readonly line: number;
}

/** An artifact of a run. */
export interface Artifact {
  readonly id: string;
  readonly name: string;
  readonly sizeBytes: number;
  readonly expired: boolean;
  readonly expiresAt: string | null;
}

type Fields = Readonly<Record<string, unknown>>;

/** An object's fields, or none: what a server leaves out must not crash a read. */
export function fields(value: unknown): Fields {
  return typeof value === "object" && value !== null ? (value as Fields) : {};
}

/** The array in a list response, which may be the body itself. */
export function items(value: unknown, name?: string): readonly unknown[] {
  const list = name === undefined ? value : fields(value)[name];
  return Array.isArray(list) ? list : [];
}

function text(value: unknown): string {
  return typeof value === "string" ? value : value === null || value === undefined ? "" : String(value);
}

function textOrNull(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

function count(value: unknown, otherwise: number): number {
  return typeof value === "number" && Number.isFinite(value) ? value : otherwise;
}

function timeMs(value: unknown): number {
  const time = typeof value === "string" ? Date.parse(value) : Number.NaN;
  return Number.isNaN(time) ? 0 : time;
}

export function toRun(data: unknown): Run {
  const run = fields(data);
  const createdAtMs = timeMs(run["created_at"]);
  return {
    id: text(run["id"]),
    attempt: count(run["run_attempt"], 1),
    status: textOrNull(run["status"]),
    conclusion: textOrNull(run["conclusion"]),
    title: text(run["display_title"] ?? run["name"]),
    workflow: text(run["name"] ?? run["path"]),
    workflowId: text(run["workflow_id"]),
    path: text(run["path"]),
    event: text(run["event"]),
    branch: textOrNull(run["head_branch"]),
    sha: text(run["head_sha"]),
    url: text(run["html_url"]),
    number: count(run["run_number"], 0),
    createdAtMs,
    startedAtMs: timeMs(run["run_started_at"]) || createdAtMs,
    updatedAtMs: timeMs(run["updated_at"]) || createdAtMs,
  };
}

export function toJob(data: unknown): Job {
  const job = fields(data);
  const id = text(job["id"]);
  return {
    id,
    checkRunId: /\/(\d+)$/.exec(text(job["check_run_url"]))?.[1] ?? id,
    name: text(job["name"]),
    status: text(job["status"]),
    conclusion: textOrNull(job["conclusion"]),
    startedAt: textOrNull(job["started_at"]),
    completedAt: textOrNull(job["completed_at"]),
    url: textOrNull(job["html_url"]),
    steps: items(job["steps"]).map((value) => {
      const step = fields(value);
      return {
        number: count(step["number"], 0),
        name: text(step["name"]),
        status: text(step["status"]),
        conclusion: textOrNull(step["conclusion"]),
      };
    }),
  };
}

export function toRepositoryInfo(data: unknown): RepositoryInfo {
  const repository = fields(data);
  const push = fields(repository["permissions"])["push"];
  return {
    defaultBranch: text(repository["default_branch"]) || "main",
    mayPush: typeof push === "boolean" ? push : undefined,
  };
}

export function toPendingDeployment(data: unknown): PendingDeployment {
  const pending = fields(data);
  const environment = fields(pending["environment"]);
  return {
    environmentId: text(environment["id"]),
    environment: text(environment["name"]),
    mayApprove: pending["current_user_can_approve"] === true,
    waitTimerMinutes: count(pending["wait_timer"], 0),
    reviewers: items(pending["reviewers"])
      .map((value) => fields(fields(value)["reviewer"]))
      .map((reviewer) => text(reviewer["login"] ?? reviewer["slug"] ?? reviewer["name"]))
      .filter((name) => name !== ""),
  };
}

export function toAnnotation(data: unknown): Annotation {
  const annotation = fields(data);
  return {
    level: text(annotation["annotation_level"]) || "notice",
    title: textOrNull(annotation["title"]),
    message: text(annotation["message"]),
    path: text(annotation["path"]),
    line: count(annotation["start_line"], 0),
  };
}

export function toArtifact(data: unknown): Artifact {
  const artifact = fields(data);
  return {
    id: text(artifact["id"]),
    name: text(artifact["name"]),
    sizeBytes: count(artifact["size_in_bytes"], 0),
    expired: artifact["expired"] === true,
    expiresAt: textOrNull(artifact["expires_at"]),
  };
}

/** An id as GitHub's JSON wants it back: a number where a double can carry it, else a `bigint` (Octokit writes both). */
export function wireId(id: string): number | bigint {
  const number = Number(id);
  return Number.isSafeInteger(number) ? number : BigInt(id);
}
