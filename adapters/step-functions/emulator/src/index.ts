/** Step Functions without AWS, for the tests of this adapter and for examples. Not published. */
export { clientOf, createQueue } from "./client.js";
export { type Lane, type LaneName, openLane, startLane } from "./lane.js";
export type { Branch, ProtocolExecution, TaskToken } from "./protocol-execution.js";
export { ProtocolServer } from "./protocol-server.js";
