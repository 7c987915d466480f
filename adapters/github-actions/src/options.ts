import type { ConnectionOptions } from "./client.js";
import type { WorkflowInputs } from "./inputs.js";

/** Which repository a call is about: one that is fixed, or one that the caller names out of a list. */
export interface RepositoryOptions {
  /** With `repo`: the one repository. */
  readonly owner?: string;
  readonly repo?: string;
  /**
   * Instead of `owner` and `repo`: the repositories that the argument `repository` may name, as `owner/name`
   * patterns where `*` stands for any characters except `/`.
   */
  readonly repositories?: readonly string[];
}

/** How runs are read, the same for runs that are started, watched and run again. */
export interface ReadingOptions {
  /** What is shown of a failed run's logs. */
  readonly logs?: LogOptions;
  /**
   * Whether progress (jobs done, the running step) is read while a run goes on: one more request per read,
   * and per 100 jobs.
   * @default true
   */
  readonly progress?: boolean;
  /**
   * From how many reads of one repository at the same moment on they are answered from one list.
   * @default 4
   */
  readonly batchFrom?: number;
  /**
   * How long a read waits for others to share a list with, in milliseconds.
   * @default 20
   */
  readonly batchWindowMs?: number;
  /**
   * After a cancel was taken and the run has gone on for this long, it is cancelled by force, which skips
   * its `always()` steps. In milliseconds. Absent: never.
   * https://docs.github.com/rest/actions/workflow-runs#force-cancel-a-workflow-run
   */
  readonly forceCancelAfterMs?: number;
  /**
   * The secret of the repository's (or App's) webhook: makes `events` available. Several during a rotation.
   */
  readonly webhookSecret?: string | readonly string[];
}

/** How much of failed jobs' logs a result carries. */
export interface LogOptions {
  /** Jobs whose log is fetched; the failed ones in the order in which they failed. 0: none. @default 5 */
  readonly jobs?: number;
  /** Lines per job, ending at its last error. @default 60 */
  readonly lines?: number;
  /** UTF-8 bytes per job. @default 8192 */
  readonly bytes?: number;
}

/** What every factory takes, for `checkOptions`. */
export const COMMON_OPTIONS = {
  octokit: true,
  auth: true,
  baseUrl: true,
  apiVersion: true,
  owner: true,
  repo: true,
  repositories: true,
  logs: true,
  progress: true,
  batchFrom: true,
  batchWindowMs: true,
  forceCancelAfterMs: true,
  webhookSecret: true,
} as const satisfies Readonly<Record<keyof (ConnectionOptions & RepositoryOptions & ReadingOptions), true>>;

/** Options of {@link githubActions}. */
export interface GitHubActionsOptions extends ConnectionOptions, RepositoryOptions, ReadingOptions {
  /** The workflow's file name (`"ci.yml"`) or id. */
  readonly workflow: string | number;
  /**
   * The branch or tag whose workflow file is run.
   * @default the repository's default branch
   */
  readonly ref?: string;
  /** Lets the argument `git_ref` name the branch or tag, out of these patterns (`*`: any characters except `/`). */
  readonly refs?: readonly string[];
  /**
   * The workflow's inputs, if the file shall not be read (no `contents: read`, or a stricter schema).
   * @default read from the workflow file at the ref, when first needed
   */
  readonly inputs?: WorkflowInputs;
  /**
   * The `workflow_dispatch` input by which a run is told from all others, if the workflow declares it and shows it
   * in its `run-name`. `false`: never send it.
   * @default "taskferry_id"
   */
  readonly correlationInput?: string | false;
  /**
   * How long an accepted dispatch may take to show up as a run, in milliseconds. Then the task ends, saying so.
   * @default 600000
   */
  readonly appearsWithinMs?: number;
  /**
   * Without correlation, when GitHub told no run id: how long after the dispatch a run that looks like ours is held
   * for it. Until then, another dispatch's run may still appear and make the choice uncertain. In milliseconds.
   * @default 10000
   */
  readonly settleMs?: number;
}

/** Options of {@link watchRun}. */
export interface WatchRunOptions extends ConnectionOptions, RepositoryOptions, ReadingOptions {
  /** Only runs of this workflow (file name or id) may be watched. @default any */
  readonly workflow?: string | number;
  /** Whether cancelling the task cancels the run that is watched. @default false */
  readonly cancelRun?: boolean;
}

/** Options of {@link rerun}. */
export interface RerunOptions extends ConnectionOptions, RepositoryOptions, ReadingOptions {
  /** Only runs of this workflow (file name or id) may be run again. @default any */
  readonly workflow?: string | number;
  /** Which jobs, unless the argument `failed_only` says it. @default "failed" */
  readonly jobs?: "all" | "failed";
  /**
   * How long after a re-run whose answer was lost its attempt is looked for, in milliseconds.
   * @default 30000
   */
  readonly appearsWithinMs?: number;
}
