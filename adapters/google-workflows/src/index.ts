export { type GoogleWorkflowsAdapter, type GoogleWorkflowsOptions, googleWorkflows } from "./adapter.js";
export type { Callback } from "./callbacks.js";
export type { ConnectionOptions, ExecutionsApi, RestAuth } from "./connection.js";
export {
  type DiscoveredWorkflow,
  type Discovery,
  type DiscoveryOptions,
  discoverWorkflows,
  parseDescription,
} from "./discovery.js";
export { EXECUTIONS_LOG, type IdTokenVerifier, type PushOptions } from "./events.js";
export type { Execution } from "./execution.js";
export type { FindOptions } from "./find.js";
export type { WorkflowName } from "./names.js";
export type { QuestionOptions, QuestionText } from "./questions.js";
export { KEY_LABEL, MAX_ARGUMENT_BYTES, type StartOptions } from "./start.js";
export { EXECUTION_STATES, type ExecutionState, executionStatus } from "./status.js";
