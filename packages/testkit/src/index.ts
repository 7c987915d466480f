export { type CheckOptions, checkAdapter, checkRequirement, checkSkips, type Verdict } from "./check.js";
export type {
  Awaitable,
  Delivery,
  Drive,
  DriveName,
  DrivenRun,
  ReceivedAnswer,
  Subject,
} from "./drive.js";
export type { Behaviour, Capability, Requirement } from "./requirement.js";
export { REQUIREMENTS, type RequirementId } from "./requirements/index.js";
export { type CheckServerOptions, checkServer, checkServerRequirement } from "./server/check-server.js";
export {
  SERVER_REQUIREMENTS,
  type ServerPlay,
  type ServerRequirement,
  type ServerRequirementId,
} from "./server/requirements.js";
export { type TestServerOptions, testServer } from "./server/test-server.js";
export type { Skip } from "./skip.js";
export { type TestAdapterOptions, testAdapter } from "./test-adapter.js";
