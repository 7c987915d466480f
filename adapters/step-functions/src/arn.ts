import { WorkflowError } from "@taskferry/core";

/** The parts of a Step Functions ARN that this adapter needs. */
export interface SfnArn {
  /** `arn:aws:states:us-east-1:123456789012`: what quotas are counted by. */
  readonly home: string;
  readonly partition: string;
  readonly region: string;
  /** The state machine's name, without version, alias or Map Run label. */
  readonly machine: string;
}

const MACHINE_ARN =
  /^(arn:(aws[a-z-]*):states:([a-z0-9-]+):\d{12}):stateMachine:([^:/\s]{1,80})(?::[^:\s]+)?$/;
const EXECUTION_ARN =
  /^(arn:(aws[a-z-]*):states:([a-z0-9-]+):\d{12}):(?:execution|express):([^:/\s]{1,80})(?:\/[^:\s]+)?:[^\s]+$/;

/** The consoles that differ from `console.aws.amazon.com`. Isolated partitions have none that the world knows. */
const CONSOLES: Readonly<Record<string, (region: string) => string>> = {
  aws: (region) => `https://${region}.console.aws.amazon.com`,
  "aws-cn": (region) => `https://${region}.console.amazonaws.cn`,
  "aws-us-gov": (region) => `https://${region}.console.amazonaws-us-gov.com`,
};

/** @throws WorkflowError `configuration` if it is no state machine, version or alias ARN. */
export function parseMachineArn(arn: string): SfnArn {
  const parsed = parse(MACHINE_ARN, arn);
  if (parsed !== undefined) return parsed;
  throw new WorkflowError(
    "configuration",
    `${JSON.stringify(arn)} is not the ARN of a state machine, version or alias`,
  );
}

/** `undefined` if it is no execution ARN. */
export function parseExecutionArn(arn: unknown): SfnArn | undefined {
  return typeof arn === "string" ? parse(EXECUTION_ARN, arn) : undefined;
}

/** Whether an execution runs a given state machine. */
export function isRunOf(execution: SfnArn | undefined, machine: SfnArn): boolean {
  return execution?.home === machine.home && execution.machine === machine.machine;
}

/** The machine itself: a version or an alias has no type, no tags and no executions of its own. */
export function baseMachineArn({ home, machine }: SfnArn): string {
  return `${home}:stateMachine:${machine}`;
}

/** What StartExecution answers for this name. */
export function executionArnOf({ home, machine }: SfnArn, name: string): string {
  return `${home}:execution:${machine}:${name}`;
}

/** The execution's page in the console of its partition. */
export function executionUrl(executionArn: string): string | undefined {
  const arn = parseExecutionArn(executionArn);
  const page =
    executionArn.split(":")[5] === "express" ? "express-executions/details" : "v2/executions/details";
  return arn && consoleUrl(arn, `${page}/${executionArn}`);
}

/** The state machine's page in the console of its partition. */
export function machineUrl(arn: SfnArn): string | undefined {
  return consoleUrl(arn, `statemachines/view/${baseMachineArn(arn)}`);
}

function consoleUrl({ partition, region }: SfnArn, page: string): string | undefined {
  const origin = CONSOLES[partition]?.(region);
  return (
    origin && `${origin}/states/home?region=${region}#/${page.replace(/[^\w:/.-]/g, encodeURIComponent)}`
  );
}

function parse(pattern: RegExp, arn: string): SfnArn | undefined {
  const [, home = "", partition = "", region = "", machine = ""] = pattern.exec(arn) ?? [];
  return home === "" ? undefined : { home, partition, region, machine };
}
