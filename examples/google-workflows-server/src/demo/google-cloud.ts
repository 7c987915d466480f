/** A Google Cloud to play with: the local server of both protocols, the two workflows, and the log sink that pushes. */
import {
  type Cloud,
  type CloudExecution,
  newSigningKey,
  type ProtocolServer,
  pushDelivery,
  startProtocolServer,
  stateEntry,
} from "@taskferry/google-workflows-emulator";
import { refundOrder, shipOrder } from "./scripts.js";

const PROJECT = "demo-project";
const LOCATION = "us-central1";
const SUBSCRIPTION = {
  audience: "https://mcp.example/events",
  serviceAccountEmail: "pusher@demo-project.iam.gserviceaccount.com",
};

export class GoogleCloud {
  /** Where Pub/Sub pushes every change of an execution's state. Absent: there is no subscription. */
  pushUrl: string | undefined;
  private readonly key = newSigningKey();

  private constructor(private readonly server: ProtocolServer) {
    server.certificates[this.key.kid] = this.key.certificate;
    server.cloud.deploy({ id: "ship-order", location: LOCATION, script: shipOrder });
    server.cloud.deploy({ id: "refund-order", location: LOCATION, script: refundOrder });
    server.cloud.onState = (execution) => void this.push(execution);
  }

  static async open(): Promise<GoogleCloud> {
    return new GoogleCloud(await startProtocolServer());
  }

  get cloud(): Cloud {
    return this.server.cloud;
  }

  /** What the server of the example needs in its environment. */
  get environment(): Record<string, string> {
    return {
      GOOGLE_CLOUD_PROJECT: PROJECT,
      GOOGLE_CLOUD_LOCATION: LOCATION,
      PUSH_AUDIENCE: SUBSCRIPTION.audience,
      PUSH_SERVICE_ACCOUNT: SUBSCRIPTION.serviceAccountEmail,
      WORKFLOWS_EMULATOR_GRPC: this.server.grpcEndpoint,
      WORKFLOWS_EMULATOR_REST: this.server.restEndpoint,
    };
  }

  /** All executions for an order: one, unless something was started twice. */
  executionsFor(orderId: string): readonly CloudExecution[] {
    return [...this.cloud.executions.values()].filter(
      ({ argument }) => (JSON.parse(argument) as { orderId: string }).orderId === orderId,
    );
  }

  /** The one execution for an order. */
  executionFor(orderId: string): CloudExecution {
    const [execution, ...more] = this.executionsFor(orderId);
    if (execution === undefined || more.length > 0)
      throw new Error(`${orderId} has ${execution === undefined ? "no execution" : "several executions"}`);
    return execution;
  }

  /** The parcel arrives now. */
  succeed(orderId: string): void {
    const { id, argument } = this.executionFor(orderId);
    const { item, quantity } = JSON.parse(argument) as { item: string; quantity: number };
    this.cloud.succeed(id, JSON.stringify({ orderId, item, quantity, trackingId: `TF-${orderId}` }));
  }

  close(): Promise<void> {
    this.cloud.onState = undefined;
    return this.server.close();
  }

  private async push(execution: CloudExecution): Promise<void> {
    if (this.pushUrl === undefined) return;
    const entry = stateEntry(PROJECT, LOCATION, execution);
    // A delivery that nobody takes is lost here. Pub/Sub would repeat it.
    await fetch(this.pushUrl, { method: "POST", ...pushDelivery(this.key, SUBSCRIPTION, entry) }).catch(
      () => {},
    );
  }
}
