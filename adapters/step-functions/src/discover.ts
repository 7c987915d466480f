import { createHash } from "node:crypto";
import {
  DescribeStateMachineCommand,
  type DescribeStateMachineOutput,
  ListStateMachinesCommand,
  ListTagsForResourceCommand,
  type StateMachineListItem,
} from "@aws-sdk/client-sfn";
import { isJsonObject, type JsonObject, type WorkflowAdapter, WorkflowError } from "@taskferry/core";
import { type ConnectionOptions, connect, type SfnClient } from "./client.js";
import { errorCode } from "./errors.js";
import { parseJson } from "./outcome.js";
import { type StepFunctionsOptions, stepFunctions } from "./step-functions.js";

/** Which machines become workflows. Without tag and prefix, none: an account's machines are not all for clients. */
export interface DiscoverOptions extends ConnectionOptions {
  /** The tag that a machine must have: a key, or a key with a value. */
  readonly tag?: string | { readonly key: string; readonly value: string };
  /** What a machine's name must begin with. */
  readonly prefix?: string;
  readonly signal?: AbortSignal;
}

/** A state machine that was found. */
export interface DiscoveredStateMachine {
  /** A tool name: the machine's name with `_` for what tool names cannot have, unique in this discovery. */
  readonly name: string;
  readonly stateMachineArn: string;
  readonly type: "STANDARD" | "EXPRESS";
  /** The definition's `Comment`, without the schema. */
  readonly description?: string;
  /** The JSON Schema that stands in a ```json fence in the `Comment`. */
  readonly inputSchema?: JsonObject;
  /** Makes the adapter, with the same connection unless `options` say otherwise. */
  adapter(options?: Partial<Omit<StepFunctionsOptions, "stateMachineArn" | "type">>): WorkflowAdapter;
}

const FENCE = /```(?:json|jsonschema|json-schema)?\s*\n?([\s\S]*?)```/;

/**
 * Lists the state machines of one account and region that are meant for clients.
 * @throws WorkflowError `configuration` without tag and prefix; else what the SDK throws
 */
export async function discoverStateMachines(options: DiscoverOptions): Promise<DiscoveredStateMachine[]> {
  const { tag, prefix = "", signal } = options;
  if (tag === undefined && prefix === "") {
    throw new WorkflowError("configuration", "discoverStateMachines needs a tag or a prefix");
  }
  const connection = connect(options);
  const { client } = connection;
  const abort = signal === undefined ? {} : { abortSignal: signal };
  try {
    const found: Omit<DiscoveredStateMachine, "name">[] = [];
    for await (const machine of listMachines(client, abort)) {
      const { stateMachineArn = "", name = "" } = machine;
      if (!name.startsWith(prefix)) continue;
      if (tag !== undefined && !(await hasTag(client, stateMachineArn, tag, abort))) continue;
      const described = await describe(client, stateMachineArn, abort);
      if (described === undefined || described.status === "DELETING") continue;
      const type = (described.type ?? machine.type) === "EXPRESS" ? "EXPRESS" : "STANDARD";
      const { client: own, region, endpoint } = options;
      found.push({
        stateMachineArn,
        type,
        ...readComment(described.definition),
        adapter: (more) =>
          stepFunctions({
            ...(own !== undefined && { client: own }),
            ...(region !== undefined && { region }),
            ...(endpoint !== undefined && { endpoint }),
            ...more,
            stateMachineArn,
            type,
          }),
      });
    }
    return nameUniquely(found);
  } finally {
    connection.close();
  }
}

type Abort = { readonly abortSignal?: AbortSignal };

async function* listMachines(client: SfnClient, abort: Abort): AsyncGenerator<StateMachineListItem> {
  let nextToken: string | undefined;
  do {
    const command = new ListStateMachinesCommand({
      maxResults: 1000,
      ...(nextToken !== undefined && { nextToken }),
    });
    const page = await client.send(command, abort);
    yield* page.stateMachines ?? [];
    nextToken = page.nextToken;
  } while (nextToken !== undefined);
}

async function hasTag(
  client: SfnClient,
  resourceArn: string,
  tag: NonNullable<DiscoverOptions["tag"]>,
  abort: Abort,
): Promise<boolean> {
  const { tags = [] } = await client.send(new ListTagsForResourceCommand({ resourceArn }), abort);
  const wanted = typeof tag === "string" ? { key: tag } : tag;
  return tags.some(
    ({ key, value }) => key === wanted.key && (!("value" in wanted) || value === wanted.value),
  );
}

/** `undefined` for a machine that is gone. Without the right to decrypt its definition, without that. */
async function describe(
  client: SfnClient,
  stateMachineArn: string,
  abort: Abort,
): Promise<DescribeStateMachineOutput | undefined> {
  try {
    return await client.send(new DescribeStateMachineCommand({ stateMachineArn }), abort);
  } catch (error) {
    if (errorCode(error) === "StateMachineDoesNotExist") return undefined;
    if (!errorCode(error).startsWith("Kms")) throw error;
    return client.send(
      new DescribeStateMachineCommand({ stateMachineArn, includedData: "METADATA_ONLY" }),
      abort,
    );
  }
}

/** ASL has no input schema and tags cannot hold one, so it stands in a fence in the machine's `Comment`. */
function readComment(definition = ""): Pick<DiscoveredStateMachine, "description" | "inputSchema"> {
  const parsed = parseJson(definition);
  const comment = isJsonObject(parsed) && typeof parsed.Comment === "string" ? parsed.Comment : "";
  const schema = parseJson(FENCE.exec(comment)?.[1] ?? "null");
  const isSchema = isJsonObject(schema) && schema.type === "object";
  // A fence that holds no schema is the author's text.
  const description = (isSchema ? comment.replace(FENCE, "") : comment).trim();
  return { ...(description !== "" && { description }), ...(isSchema && { inputSchema: schema }) };
}

/** Names that fall together get the beginning of their ARN's hash, so that they stay the same in any order. */
function nameUniquely(found: readonly Omit<DiscoveredStateMachine, "name">[]): DiscoveredStateMachine[] {
  const plain = found.map(({ stateMachineArn }) =>
    (stateMachineArn.split(":")[6] ?? "").replace(/[^\w-]/g, "_"),
  );
  // Some hosts take `-` and `_`, or capitals and small letters, for the same.
  const folded = plain.map((name) => name.toLowerCase().replaceAll("-", "_"));
  return found.map((machine, index) => {
    const isUnique = folded.filter((name) => name === folded[index]).length === 1;
    const hash = createHash("sha256").update(machine.stateMachineArn).digest("hex").slice(0, 6);
    return { name: isUnique ? (plain[index] ?? "") : `${plain[index]}_${hash}`, ...machine };
  });
}
