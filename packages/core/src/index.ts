export type {
  Answer,
  CallContext,
  ErrorVerdict,
  EventRequest,
  FindRequest,
  LogPage,
  Question,
  ReadRequest,
  RunFailure,
  RunLink,
  RunOutput,
  RunProgress,
  RunRef,
  RunState,
  RunStatus,
  StartedRun,
  StartRequest,
  StopRequest,
  WorkflowAdapter,
} from "./contract/adapter.js";
export {
  EngineError,
  isEngineError,
  isWorkflowError,
  WorkflowError,
  type WorkflowErrorCode,
  type WorkflowErrorOptions,
} from "./contract/errors.js";
export { canonicalJson, isJsonObject, type Json, type JsonObject } from "./contract/json.js";
export { checkOptions } from "./contract/options.js";
export { LOCAL_OWNER, type Owner, type Principal, principalOwner } from "./contract/owner.js";
export type { ObjectSchema } from "./contract/schema.js";
export {
  type Generation,
  isTerminal,
  mayBecome,
  type QuestionState,
  type StartPhase,
  type StoredQuestion,
  type Task,
  type TaskMethod,
  type TaskOutcome,
  type TaskStatus,
} from "./contract/task.js";
export {
  type BeforeVerdict,
  type CompletedRun,
  defineWorkflow,
  type Workflow,
  type WorkflowKind,
  type WorkflowOptions,
} from "./contract/workflow.js";
export type { CreateCall, Retention } from "./engine/create.js";
export { createTaskEngine, TaskEngine, type TaskEngineOptions, type TaskView } from "./engine/engine.js";
export type { Limits } from "./engine/limits.js";
export { renderResult } from "./engine/result.js";
export type { Timing } from "./engine/timing.js";
export type { Logger } from "./observe/observe.js";
export { type AttachOptions, attach } from "./server/attach.js";
export type { Caller, Connection, OwnerResolver } from "./server/connection.js";
export type { ServeHttpOptions } from "./server/http-options.js";
export type { ServerInfo } from "./server/make-server.js";
export { type HttpServer, serveHttp } from "./server/serve-http.js";
export {
  type ServeStdioOptions,
  type StdioServer,
  serveStdio,
} from "./server/serve-stdio.js";
export type { TaskStore } from "./store/task-store.js";
