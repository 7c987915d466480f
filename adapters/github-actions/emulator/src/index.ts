/** GitHub without GitHub, for the tests of this adapter and for examples. Not published. */
export { type Fault, ProtocolServer } from "./protocol-server.js";
export {
  type JobRecord,
  latest,
  ProtocolState,
  type RepositoryRecord,
  type RunRecord,
} from "./protocol-state.js";
export { type Delivery, deliver, deliveryOf } from "./webhook.js";
