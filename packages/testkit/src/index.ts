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
export type { Skip } from "./skip.js";
export { type TestAdapterOptions, testAdapter } from "./test-adapter.js";
