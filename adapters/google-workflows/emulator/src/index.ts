/** Google Cloud Workflows without Google Cloud, for the tests of this adapter and for examples. Not published. */
export {
  Cloud,
  type CloudExecution,
  CloudFault,
  type Fault,
  type Script,
  type ScriptContext,
  WorkflowFailure,
} from "./cloud.js";
export { type ProtocolServer, startProtocolServer } from "./protocol-server.js";
export { newSigningKey, pushDelivery, type SigningKey, type Subscription, stateEntry } from "./push.js";
