export { connect } from "./connect.js";
export { IDEMPOTENCY_KEY } from "./meta.js";
export type {
  Answered,
  AskedQuestion,
  ConnectOptions,
  Ending,
  Generation,
  Json,
  JsonObject,
  RemoteTask,
  StartOptions,
  TaskClient,
  TaskStatus,
  ToolResult,
} from "./task-client.js";
