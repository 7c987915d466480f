/** What the protocol server knows: repositories, runs, jobs, and how a test moves them on. */
import { randomBytes } from "node:crypto";

export interface RepositoryRecord {
  readonly owner: string;
  readonly name: string;
  readonly defaultBranch: string;
  readonly branches: Set<string>;
  readonly tags: Set<string>;
  /** Path → text, on every branch that does not say otherwise. */
  readonly files: Map<string, string>;
  /** `branch:path` → text. */
  readonly branchFiles: Map<string, string>;
  readonly workflows: WorkflowRecord[];
  mayPush: boolean;
}

export interface WorkflowRecord {
  readonly id: bigint;
  readonly path: string;
  name: string;
  state: string;
}

export interface StepRecord {
  readonly name: string;
  status: string;
  conclusion: string | null;
}

export interface JobRecord {
  readonly id: bigint;
  readonly name: string;
  status: string;
  conclusion: string | null;
  startedAtMs: number;
  completedAtMs: number | null;
  steps: StepRecord[];
  /** The raw log; `null`: expired. */
  log: string | null;
  /** Storage has not got it yet. */
  logLate: boolean;
  annotations: Record<string, unknown>[];
}

export interface PendingRecord {
  readonly environmentId: bigint;
  readonly environment: string;
  mayApprove: boolean;
  readonly reviewers: readonly string[];
  readonly waitTimer: number;
}

export interface ReviewRecord {
  readonly environmentId: bigint;
  readonly environment: string;
  readonly state: string;
  readonly comment: string;
}

/** One attempt of a run. */
export interface AttemptRecord {
  readonly number: number;
  status: string;
  conclusion: string | null;
  startedAtMs: number;
  updatedAtMs: number;
  jobs: JobRecord[];
}

export interface RunRecord {
  readonly id: bigint;
  readonly repository: RepositoryRecord;
  readonly workflow: WorkflowRecord;
  readonly number: number;
  readonly event: string;
  readonly branch: string;
  readonly sha: string;
  readonly title: string;
  readonly inputs: Readonly<Record<string, string>>;
  createdAtMs: number;
  /** Whether lists and reads show it. */
  visible: boolean;
  readonly attempts: AttemptRecord[];
  pending: PendingRecord[];
  readonly reviews: ReviewRecord[];
  artifacts: { readonly id: bigint; readonly name: string; readonly expired: boolean }[];
  /** Which cancels were asked for. */
  readonly cancels: ("cancel" | "force-cancel")[];
  approved: boolean;
}

/** The attempt that the run's own route shows. */
export function latest(run: RunRecord): AttemptRecord {
  return run.attempts.at(-1) as AttemptRecord;
}

/** The state of the world, by which a test plays GitHub. */
export class ProtocolState {
  readonly repositories = new Map<string, RepositoryRecord>();
  readonly runs: RunRecord[] = [];
  /** New runs stay hidden until {@link reveal}. */
  hideNewRuns = false;
  /** Whether a cancel ends a run at once. */
  cancelEnds: (run: RunRecord) => boolean = () => false;
  /** How wrong the server's clock is, seen from here. */
  clockSkewMs = 0;
  #nextId = 7_000_000_001n;

  now(): number {
    return Date.now() + this.clockSkewMs;
  }

  /** Ids from here on, e.g. above 2^53. */
  idsFrom(id: bigint): void {
    this.#nextId = id;
  }

  id(): bigint {
    this.#nextId += 1n;
    return this.#nextId;
  }

  repository(
    fullName: string,
    options: {
      readonly files?: Readonly<Record<string, string>>;
      readonly branches?: readonly string[];
      readonly tags?: readonly string[];
    } = {},
  ): RepositoryRecord {
    const [owner = "", name = ""] = fullName.split("/");
    const files = new Map(Object.entries(options.files ?? {}));
    const repository: RepositoryRecord = {
      owner,
      name,
      defaultBranch: "main",
      branches: new Set(["main", ...(options.branches ?? [])]),
      tags: new Set(options.tags),
      files,
      branchFiles: new Map(),
      workflows: [],
      mayPush: true,
    };
    for (const path of files.keys()) {
      repository.workflows.push({
        id: this.id(),
        path,
        name: path.replace(/^.*\//, "").replace(/\.ya?ml$/, ""),
        state: "active",
      });
    }
    this.repositories.set(fullName.toLowerCase(), repository);
    return repository;
  }

  addRun(
    repository: RepositoryRecord,
    options: Partial<Pick<RunRecord, "event" | "branch" | "sha" | "title" | "inputs" | "visible">> & {
      readonly workflow?: WorkflowRecord;
      readonly createdAtMs?: number;
    } = {},
  ): RunRecord {
    const workflow = options.workflow ?? (repository.workflows[0] as WorkflowRecord);
    const createdAtMs = options.createdAtMs ?? this.now();
    const run: RunRecord = {
      id: this.id(),
      repository,
      workflow,
      number: this.runs.length + 1,
      event: options.event ?? "push",
      branch: options.branch ?? repository.defaultBranch,
      sha: options.sha ?? randomBytes(20).toString("hex"),
      title: options.title ?? workflow.name,
      inputs: options.inputs ?? {},
      createdAtMs,
      visible: options.visible ?? !this.hideNewRuns,
      attempts: [this.#attempt(1, createdAtMs)],
      pending: [],
      reviews: [],
      artifacts: [],
      cancels: [],
      approved: false,
    };
    this.runs.push(run);
    return run;
  }

  /** A re-run: the same run, one attempt more. */
  addAttempt(run: RunRecord): AttemptRecord {
    const attempt = this.#attempt(run.attempts.length + 1, this.now());
    run.attempts.push(attempt);
    return attempt;
  }

  /** Shows runs that were hidden. */
  reveal(...runs: readonly RunRecord[]): void {
    for (const run of runs) run.visible = true;
  }

  set(run: RunRecord, status: string, conclusion: string | null = null): void {
    Object.assign(latest(run), { status, conclusion, updatedAtMs: this.now() });
  }

  /** Ends the latest attempt; `agoMs`: as if some time ago. */
  finish(run: RunRecord, conclusion: string | null, agoMs = 0): void {
    this.set(run, "completed", conclusion);
    latest(run).updatedAtMs -= agoMs;
  }

  addJob(run: RunRecord, options: Partial<Omit<JobRecord, "id">> & { readonly name: string }): JobRecord {
    const conclusion = options.conclusion ?? null;
    const status = options.status ?? (conclusion === null ? "queued" : "completed");
    const job: JobRecord = {
      startedAtMs: this.now() - 60_000,
      completedAtMs: status === "completed" ? this.now() - 30_000 : null,
      steps: [],
      log: status === "completed" ? `${options.name} ran\n` : "",
      logLate: false,
      annotations: [],
      ...options,
      id: this.id(),
      status,
      conclusion,
    };
    latest(run).jobs.push(job);
    return job;
  }

  addPending(run: RunRecord, environment: string, options: Partial<PendingRecord> = {}): PendingRecord {
    const pending: PendingRecord = {
      environmentId: options.environmentId ?? this.id(),
      environment,
      mayApprove: options.mayApprove ?? true,
      reviewers: options.reviewers ?? [],
      waitTimer: options.waitTimer ?? 0,
    };
    run.pending.push(pending);
    return pending;
  }

  find(repository: RepositoryRecord, id: string): RunRecord | undefined {
    return this.runs.find((run) => run.repository === repository && String(run.id) === id && run.visible);
  }

  findJob(repository: RepositoryRecord, id: string): JobRecord | undefined {
    return this.runs
      .filter((run) => run.repository === repository)
      .flatMap((run) => run.attempts.flatMap((attempt) => attempt.jobs))
      .find((job) => String(job.id) === id);
  }

  #attempt(number: number, startedAtMs: number): AttemptRecord {
    return { number, status: "queued", conclusion: null, startedAtMs, updatedAtMs: startedAtMs, jobs: [] };
  }
}
