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
} from "./task-client.js";
