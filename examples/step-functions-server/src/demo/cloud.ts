/** A Step Functions to play with, and the two machines in it: moto, which runs them, or a stand-in where there is none. */
import { readFile } from "node:fs/promises";
import { CreateStateMachineCommand, ListExecutionsCommand, type SFNClient } from "@aws-sdk/client-sfn";
import { clientOf, createQueue, startLane } from "@taskferry/step-functions-emulator";
import { openStandIn } from "./stand-in.js";

/** The machines' ARNs, under the names that the server wants them in its environment. */
export interface MachineArns {
  readonly REPORT_MACHINE_ARN: string;
  readonly DEPLOY_MACHINE_ARN: string;
}

export interface Cloud {
  readonly name: string;
  readonly endpoint: string;
  readonly arns: MachineArns;
  /** The status of every execution of the two machines, by name. */
  executions(): Promise<ReadonlyMap<string, string>>;
  close(): Promise<void>;
}

export async function openCloud(): Promise<Cloud> {
  try {
    const lane = await startLane("moto");
    const client = lane.client();
    const queueUrl = await createQueue(lane.endpoint, "approvals");
    const arns = {
      REPORT_MACHINE_ARN: await createMachine(client, "report"),
      DEPLOY_MACHINE_ARN: await createMachine(client, "deploy", { ApprovalQueueUrl: queueUrl }),
    };
    return cloud("moto, which runs the state machines", lane.endpoint, arns, client, () => lane.close());
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    console.log(`moto cannot be had here (${reason}): a stand-in plays the state machines instead.`);
    const { server, arns } = await openStandIn();
    const client = clientOf(server.endpoint);
    return cloud("the stand-in for Step Functions", server.endpoint, arns, client, () => server.close());
  }
}

function cloud(
  name: string,
  endpoint: string,
  arns: MachineArns,
  client: SFNClient,
  close: () => Promise<void>,
): Cloud {
  return {
    name,
    endpoint,
    arns,
    async executions() {
      const lists = await Promise.all(
        Object.values(arns).map((stateMachineArn) =>
          client.send(new ListExecutionsCommand({ stateMachineArn, maxResults: 1000 })),
        ),
      );
      const all = lists.flatMap(({ executions = [] }) => executions);
      return new Map(all.map(({ name = "", status = "" }) => [name, status]));
    },
    async close() {
      client.destroy();
      await close();
    },
  };
}

async function createMachine(client: SFNClient, name: string, values: Record<string, string> = {}) {
  const file = new URL(`../../state-machines/${name}.asl.json`, import.meta.url);
  const definition = (await readFile(file, "utf8")).replace(/\$\{(\w+)\}/g, (_, key) => values[key] ?? "");
  const roleArn = "arn:aws:iam::123456789012:role/states";
  const { stateMachineArn = "" } = await client.send(
    new CreateStateMachineCommand({ name, definition, roleArn }),
  );
  return stateMachineArn;
}
