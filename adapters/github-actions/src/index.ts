export type { ConnectionOptions, GitHubAppAuth, OctokitLike } from "./client.js";
export { githubActions } from "./github-actions.js";
export {
  checkInputs,
  inputsSchema,
  type WorkflowInput,
  type WorkflowInputs,
  workflowInputs,
} from "./inputs.js";
export type {
  GitHubActionsOptions,
  LogOptions,
  ReadingOptions,
  RepositoryOptions,
  RerunOptions,
  WatchRunOptions,
} from "./options.js";
export { rerun, rerunSchema } from "./rerun.js";
export {
  type AnnotationResult,
  type ArtifactResult,
  type JobCounts,
  type JobResult,
  type LogResult,
  type RunResult,
  runResultSchema,
} from "./result-schema.js";
export { CONCLUSIONS, meaningOf, type NativeMeaning, nativeWord, STATUSES } from "./status.js";
export { watchRun, watchRunSchema } from "./watch-run.js";
export { describeWorkflow, discoverWorkflows, type WorkflowDescription } from "./workflow-file.js";
