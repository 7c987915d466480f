/**
 * A server that speaks Step Functions' wire protocol (AWS JSON 1.0), for what no emulator shows. Executions are moved
 * by the test, and each operation can be made to fail, to lie or to lose its response. Built from the shapes of
 * `@aws-sdk/client-sfn` and the API reference: https://docs.aws.amazon.com/step-functions/latest/apireference/
 */
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import type { SFNClient } from "@aws-sdk/client-sfn";
import { clientOf } from "./client.js";
import { DATA_FIELDS, ProtocolExecution, type QueuedTask, type TaskToken } from "./protocol-execution.js";

type Wire = Record<string, unknown>;

/** What to do instead of an operation, or around it. `input` is what was asked for. */
export type Behaviour = (operate: () => Promise<Wire>, input: Wire) => Promise<Wire>;

/** An error as AWS sends it. */
export class ProtocolError extends Error {
  constructor(
    override readonly name: string,
    readonly statusCode = 400,
    message = `${name}: a message with "details" of the request`,
  ) {
    super(message);
  }
}

/** The connection is cut instead of answered. */
class Cut extends Error {}

/** Answers an error; the operation does not take place. */
export function refuse(name: string, statusCode?: number): Behaviour {
  return async () => {
    throw new ProtocolError(name, statusCode);
  };
}

/** Answers an error although the operation took place. */
export function acceptThenRefuse(name: string, statusCode = 500): Behaviour {
  return async (operate) => {
    await operate();
    throw new ProtocolError(name, statusCode);
  };
}

/** Cuts the connection, before or after the operation took place. */
export function cut(when: "before" | "after"): Behaviour {
  return async (operate) => {
    if (when === "after") await operate();
    throw new Cut();
  };
}

/** Takes the request and never answers. */
export function hang(): Behaviour {
  return () => new Promise(() => {});
}

/** Changes what the operation answers. */
export function amend(change: (answer: Wire) => Wire): Behaviour {
  return async (operate) => change(await operate());
}

interface Machine {
  readonly name: string;
  readonly type: "STANDARD" | "EXPRESS";
  readonly definition: string;
  readonly tags: Readonly<Record<string, string>>;
  readonly status: "ACTIVE" | "DELETING";
  /** What an Express machine does. */
  readonly run: (input: unknown) => { output?: unknown; error?: string; cause?: string; status?: string };
  /** What the executions of a Standard machine do by themselves; otherwise somebody moves them. */
  readonly play: (execution: ProtocolExecution) => Promise<void>;
}

export const ACCOUNT = "arn:aws:states:us-east-1:123456789012";

export class ProtocolServer {
  readonly machines = new Map<string, Machine>();
  readonly executions = new Map<string, ProtocolExecution>();
  /** Every request that came in. */
  readonly calls: { readonly operation: string; readonly input: Wire }[] = [];
  /** How long GetActivityTask waits for a task; AWS takes 60 s. */
  activityPollMs = 100;
  /** Results per page of listings; AWS takes 1000. */
  pageSize = 1000;
  readonly #queues = new Map<string, QueuedTask[]>();
  readonly #behaviours = new Map<string, Behaviour[]>();
  readonly #lasting = new Map<string, Behaviour>();
  readonly #clients: SFNClient[] = [];

  private constructor(private readonly server: Server) {}

  static async open(): Promise<ProtocolServer> {
    const http = createServer((request, response) => void protocol.#handle(request, response));
    const protocol = new ProtocolServer(http);
    await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
    return protocol;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  client(maxAttempts?: number): SFNClient {
    const client = clientOf(this.endpoint, maxAttempts);
    this.#clients.push(client);
    return client;
  }

  async close(): Promise<void> {
    for (const client of this.#clients) client.destroy();
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  createMachine(name: string, options: Partial<Omit<Machine, "name">> = {}): string {
    const stateMachineArn = `${ACCOUNT}:stateMachine:${name}`;
    const defaults = {
      type: "STANDARD",
      definition: "{}",
      tags: {},
      status: "ACTIVE",
      run: () => ({ output: {} }),
      play: async () => {},
    } as const;
    this.machines.set(stateMachineArn, { ...defaults, ...options, name });
    return stateMachineArn;
  }

  /** What the next calls of an operation meet, one behaviour each; then it works again. */
  next(operation: string, ...behaviours: readonly Behaviour[]): void {
    this.#behaviours.set(operation, [...(this.#behaviours.get(operation) ?? []), ...behaviours]);
  }

  /** What all calls of an operation meet from now on; `"*"`: of every operation. */
  always(operation: string, behaviour: Behaviour | undefined): void {
    if (behaviour === undefined) this.#lasting.delete(operation);
    else this.#lasting.set(operation, behaviour);
  }

  /** The one execution there is, or the one with this ARN. */
  execution(executionArn?: string): ProtocolExecution {
    const all = [...this.executions.values()];
    const found = executionArn === undefined ? all : all.filter((one) => one.executionArn === executionArn);
    if (found.length !== 1 || found[0] === undefined) throw new Error(`${found.length} executions`);
    return found[0];
  }

  countOf(operation: string): number {
    return this.calls.filter((call) => call.operation === operation).length;
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const operation = String(request.headers["x-amz-target"] ?? "").replace("AWSStepFunctions.", "");
    const input = JSON.parse(Buffer.concat(chunks).toString() || "{}") as Wire;
    this.calls.push({ operation, input });
    const behaviour =
      this.#behaviours.get(operation)?.shift() ?? this.#lasting.get(operation) ?? this.#lasting.get("*");
    const operate = () => this.#operate(operation, input);
    try {
      send(response, 200, await (behaviour?.(operate, input) ?? operate()));
    } catch (error) {
      if (error instanceof Cut) request.socket.destroy();
      else if (error instanceof ProtocolError) {
        send(response, error.statusCode, {
          __type: `com.amazonaws.states#${error.name}`,
          message: error.message,
        });
      } else send(response, 500, { __type: "InternalServerError", message: String(error) });
    }
  }

  async #operate(operation: string, input: Wire): Promise<Wire> {
    const text = (name: string) => String(input[name] ?? "");
    switch (operation) {
      case "StartExecution":
        return this.#start(text("stateMachineArn"), String(input.name ?? randomUUID()), text("input"));
      case "StartSyncExecution":
        return this.#startSync(text("stateMachineArn"), String(input.name ?? randomUUID()), text("input"));
      case "DescribeExecution":
        return this.#execution(text("executionArn")).describe();
      case "StopExecution": {
        const execution = this.#execution(text("executionArn"));
        if (execution.isRunning) execution.abort();
        return { stopDate: execution.stopDate };
      }
      case "ListExecutions": {
        const stateMachineArn = text("stateMachineArn");
        this.#machine(stateMachineArn);
        const all = [...this.executions.values()]
          .filter((execution) => execution.stateMachineArn === stateMachineArn)
          .map(({ executionArn, name, status, startDate, stopDate }) => {
            return { executionArn, stateMachineArn, name, status, startDate, stopDate };
          });
        const { items, nextToken } = page(all, input, this.pageSize);
        return { executions: items, nextToken };
      }
      case "GetExecutionHistory":
        return this.#history(input);
      case "SendTaskSuccess":
        return this.#closeTask(text("taskToken"), "Succeeded", { output: text("output") });
      case "SendTaskFailure":
        return this.#closeTask(text("taskToken"), "Failed", { error: text("error"), cause: text("cause") });
      case "SendTaskHeartbeat":
        this.#token(text("taskToken")).heartbeats += 1;
        return {};
      case "GetActivityTask":
        return this.#activityTask(text("activityArn"), text("workerName"));
      case "DescribeStateMachine": {
        const stateMachineArn = text("stateMachineArn");
        const { name, type, definition, status } = this.#machine(stateMachineArn);
        return {
          stateMachineArn,
          name,
          type,
          definition,
          status,
          roleArn: "arn:aws:iam::123456789012:role/r",
          creationDate: 1,
        };
      }
      case "ListStateMachines": {
        const all = [...this.machines].map(([stateMachineArn, { name, type }]) => {
          return { stateMachineArn, name, type, creationDate: 1 };
        });
        const { items, nextToken } = page(all, input, this.pageSize);
        return { stateMachines: items, nextToken };
      }
      case "ListTagsForResource": {
        const { tags } = this.#machine(text("resourceArn"));
        return { tags: Object.entries(tags).map(([key, value]) => ({ key, value })) };
      }
      default:
        throw new ProtocolError("UnknownOperationException");
    }
  }

  #start(stateMachineArn: string, name: string, input: string): Wire {
    const machine = this.#machine(stateMachineArn);
    if (machine.status === "DELETING") throw new ProtocolError("StateMachineDeleting");
    checkJson(input, "InvalidExecutionInput");
    const startDate = Date.now() / 1000;
    if (machine.type === "EXPRESS") {
      return { executionArn: `${ACCOUNT}:express:${machine.name}:${name}:${randomUUID()}`, startDate };
    }
    const executionArn = `${ACCOUNT}:execution:${machine.name}:${name}`;
    const existing = this.executions.get(executionArn);
    if (existing !== undefined) {
      if (existing.isRunning && existing.input === input)
        return { executionArn, startDate: existing.startDate };
      throw new ProtocolError("ExecutionAlreadyExists");
    }
    const enqueue = (arn: string, task: QueuedTask) => void this.#queue(arn).push(task);
    const execution = new ProtocolExecution(executionArn, stateMachineArn, name, input, enqueue);
    this.executions.set(executionArn, execution);
    void machine.play(execution);
    return { executionArn, startDate };
  }

  #startSync(stateMachineArn: string, name: string, input: string): Wire {
    const machine = this.#machine(stateMachineArn);
    if (machine.type !== "EXPRESS") throw new ProtocolError("StateMachineTypeNotSupported");
    const {
      output,
      error,
      cause,
      status = error === undefined ? "SUCCEEDED" : "FAILED",
    } = machine.run(JSON.parse(input));
    const executionArn = `${ACCOUNT}:express:${machine.name}:${name}:${randomUUID()}`;
    const [startDate, stopDate] = [Date.now() / 1000, Date.now() / 1000];
    return {
      executionArn,
      stateMachineArn,
      name,
      status,
      startDate,
      stopDate,
      error,
      cause,
      output: JSON.stringify(output),
    };
  }

  #history(input: Wire): Wire {
    const { events } = this.#execution(String(input.executionArn));
    const ordered = input.reverseOrder === true ? events.toReversed() : events;
    const { items, nextToken } = page(
      ordered,
      input,
      Math.min(Number(input.maxResults ?? 100), this.pageSize),
    );
    if (input.includeExecutionData !== false) return { events: items, nextToken };
    const withoutData = (value: unknown) =>
      typeof value === "object" && value !== null
        ? Object.fromEntries(Object.entries(value).filter(([name]) => !DATA_FIELDS.has(name)))
        : value;
    const stripped = items.map((event) =>
      Object.fromEntries(Object.entries(event).map(([name, value]) => [name, withoutData(value)])),
    );
    return { events: stripped, nextToken };
  }

  #closeTask(token: string, how: "Succeeded" | "Failed", details: Wire): Wire {
    const task = this.#token(token);
    if (how === "Succeeded") checkJson(String(details.output), "InvalidOutput");
    task.open = false;
    const field = `${task.kind.toLowerCase()}${how}EventDetails` as const;
    task.branch.add(`${task.kind}${how}`, { [field]: details });
    return {};
  }

  async #activityTask(activityArn: string, workerName: string): Promise<Wire> {
    const queue = this.#queue(activityArn);
    for (const until = Date.now() + this.activityPollMs; queue.length === 0 && Date.now() < until; )
      await delay(5);
    const task = queue.shift();
    if (task === undefined) return {};
    task.token.branch.add("ActivityStarted", { activityStartedEventDetails: { workerName } });
    return { taskToken: task.token.token, input: task.input };
  }

  #queue(activityArn: string): QueuedTask[] {
    const queue = this.#queues.get(activityArn) ?? [];
    this.#queues.set(activityArn, queue);
    return queue;
  }

  /** Versions and aliases lead to their machine. */
  #machine(stateMachineArn: string): Machine {
    const machine = this.machines.get(stateMachineArn.split(":").slice(0, 7).join(":"));
    if (machine === undefined) throw new ProtocolError("StateMachineDoesNotExist");
    return machine;
  }

  #execution(executionArn: string): ProtocolExecution {
    const execution = this.executions.get(executionArn);
    if (execution === undefined) throw new ProtocolError("ExecutionDoesNotExist");
    return execution;
  }

  #token(token: string): TaskToken {
    const all = [...this.executions.values()].flatMap(({ tokens }) => tokens);
    const found = all.find((one) => one.token === token);
    if (found === undefined) throw new ProtocolError("InvalidToken");
    if (!found.open) throw new ProtocolError("TaskTimedOut");
    return found;
  }
}

function page<Item>(
  all: readonly Item[],
  { nextToken }: Wire,
  size: number,
): { items: Item[]; nextToken?: string } {
  const from = Number(nextToken ?? 0);
  const items = all.slice(from, from + size);
  return from + size < all.length ? { items, nextToken: String(from + size) } : { items };
}

function checkJson(text: string, error: string): void {
  try {
    JSON.parse(text);
  } catch {
    throw new ProtocolError(error);
  }
  if (Buffer.byteLength(text) > 262_144) throw new ProtocolError(error);
}

function send(response: ServerResponse, statusCode: number, body: unknown): void {
  const headers = { "content-type": "application/x-amz-json-1.0", "x-amzn-requestid": randomUUID() };
  response.writeHead(statusCode, headers).end(JSON.stringify(body));
}
