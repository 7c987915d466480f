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
} from "./adapter.js";
export { createTaskEngine, TaskEngine, type TaskEngineOptions, type TaskView } from "./engine.js";
export {
  EngineError,
  isEngineError,
  isWorkflowError,
  WorkflowError,
  type WorkflowErrorCode,
  type WorkflowErrorOptions,
} from "./errors.js";
export { canonicalJson, isJsonObject, type Json, type JsonObject } from "./json.js";
export type { Limits } from "./limits.js";
export type { CreateCall, Retention } from "./new-task.js";
export type { Logger } from "./observe.js";
export { checkOptions } from "./options.js";
export { LOCAL_OWNER, type Owner, type Principal, principalOwner } from "./owner.js";
export { renderResult } from "./result.js";
export type { ObjectSchema } from "./schema.js";
export { type AttachOptions, attach } from "./server/attach.js";
export type { Caller, Connection, OwnerResolver } from "./server/connection.js";
export type { ServerInfo } from "./server/make-server.js";
export { type HttpServer, type ServeHttpOptions, serveHttp } from "./server/serve-http.js";
export {
  type ServeStdioOptions,
  type StdioServer,
  serveStdio,
} from "./server/serve-stdio.js";
export type { TaskStore } from "./store/task-store.js";
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
} from "./task.js";
export type { Timing } from "./timing.js";
export {
  type BeforeVerdict,
  type CompletedRun,
  defineWorkflow,
  type Workflow,
  type WorkflowKind,
  type WorkflowOptions,
} from "./workflow.js";
