/** One execution of the protocol server: nothing runs by itself, the test moves it. */
import { randomUUID } from "node:crypto";

/** A history event as it is on the wire. */
export interface WireEvent {
  readonly id: number;
  readonly previousEventId: number;
  readonly type: string;
  readonly timestamp: number;
  readonly [details: `${string}EventDetails`]: unknown;
}

/** A task token and what became of it. */
export interface TaskToken {
  readonly token: string;
  readonly branch: Branch;
  readonly kind: "Task" | "Activity";
  open: boolean;
  heartbeats: number;
}

/** A task in an activity's queue. */
export interface QueuedTask {
  readonly token: TaskToken;
  readonly input: string;
}

/** Details that only come with `includeExecutionData: true`. */
export const DATA_FIELDS = new Set(["input", "output", "parameters"]);

const seconds = () => Date.now() / 1000;

/** One line of an execution: the whole of it, a branch of a Parallel, or an iteration of a Map. */
export class Branch {
  #state = "";

  constructor(
    readonly execution: ProtocolExecution,
    public last: number,
  ) {}

  add(type: string, details: Record<`${string}EventDetails`, unknown> = {}): this {
    this.last = this.execution.append(type, this.last, details);
    return this;
  }

  enter(name: string, type = "Task"): this {
    this.#state = name;
    return this.add(`${type}StateEntered`, {
      stateEnteredEventDetails: { name, input: this.execution.input },
    });
  }

  exit(type = "Task"): this {
    return this.add(`${type}StateExited`, { stateExitedEventDetails: { name: this.#state, output: "{}" } });
  }

  /** Enters a `.waitForTaskToken` state. `parameters` gets the token. */
  waitForToken(
    name: string,
    parameters: (token: string) => unknown,
    options: { readonly heartbeatInSeconds?: number } = {},
  ): TaskToken {
    const token = this.execution.newToken(this, "Task");
    const resource = { resourceType: "sqs", resource: "sendMessage.waitForTaskToken" };
    this.enter(name)
      .add("TaskScheduled", {
        taskScheduledEventDetails: {
          ...resource,
          region: "us-east-1",
          parameters: JSON.stringify(parameters(token.token)),
          ...options,
        },
      })
      .add("TaskStarted", { taskStartedEventDetails: resource })
      .add("TaskSubmitted", { taskSubmittedEventDetails: { ...resource, output: "{}" } });
    return token;
  }

  /** Enters an activity state and puts its task into the queue. */
  scheduleActivity(name: string, activityArn: string, input: unknown): TaskToken {
    const token = this.execution.newToken(this, "Activity");
    const text = JSON.stringify(input);
    this.enter(name).add("ActivityScheduled", {
      activityScheduledEventDetails: { resource: activityArn, input: text, heartbeatInSeconds: 300 },
    });
    this.execution.enqueue(activityArn, { token, input: text });
    return token;
  }

  parallel(name: string, count: number): Branch[] {
    this.enter(name, "Parallel").add("ParallelStateStarted");
    return Array.from({ length: count }, () => new Branch(this.execution, this.last));
  }

  map(name: string, length: number): Branch[] {
    this.enter(name, "Map").add("MapStateStarted", { mapStateStartedEventDetails: { length } });
    return Array.from({ length }, (_, index) =>
      new Branch(this.execution, this.last).add("MapIterationStarted", {
        mapIterationStartedEventDetails: { name, index },
      }),
    );
  }
}

export class ProtocolExecution {
  /** Any word: tests invent some. */
  status = "RUNNING";
  output: string | undefined;
  error: string | undefined;
  cause: string | undefined;
  stopDate: number | undefined;
  redriveCount = 0;
  readonly startDate = seconds();
  readonly events: WireEvent[] = [];
  readonly tokens: TaskToken[] = [];
  readonly main: Branch;

  constructor(
    readonly executionArn: string,
    readonly stateMachineArn: string,
    readonly name: string,
    readonly input: string,
    readonly enqueue: (activityArn: string, task: QueuedTask) => void,
  ) {
    this.append("ExecutionStarted", 0, { executionStartedEventDetails: { input } });
    this.main = new Branch(this, 0);
  }

  get isRunning(): boolean {
    return this.stopDate === undefined;
  }

  append(type: string, previousEventId: number, details: Record<`${string}EventDetails`, unknown>): number {
    const id = this.events.length + 1;
    this.events.push({ id, previousEventId, type, timestamp: seconds(), ...details });
    return id;
  }

  newToken(branch: Branch, kind: TaskToken["kind"]): TaskToken {
    // As AWS's are: long, and with characters that mean something in URLs and forms.
    const token = `AQC+/${randomUUID()}${"A/+".repeat(100)}==`;
    this.tokens.push({ token, branch, kind, open: true, heartbeats: 0 });
    return this.tokens.at(-1) as TaskToken;
  }

  succeed(output: unknown): this {
    this.output = JSON.stringify(output);
    this.main.add("ExecutionSucceeded", { executionSucceededEventDetails: { output: this.output } });
    return this.#close("SUCCEEDED");
  }

  fail(error: string, cause: string, at = this.main): this {
    Object.assign(this, { error, cause });
    at.add("ExecutionFailed", { executionFailedEventDetails: { error, cause } });
    return this.#close("FAILED");
  }

  timeOut(): this {
    this.main.add("ExecutionTimedOut", { executionTimedOutEventDetails: {} });
    return this.#close("TIMED_OUT");
  }

  abort(): this {
    this.main.add("ExecutionAborted", { executionAbortedEventDetails: {} });
    return this.#close("ABORTED");
  }

  /** RedriveExecution: the same ARN runs on. */
  redrive(): this {
    this.redriveCount += 1;
    Object.assign(this, { status: "RUNNING", error: undefined, cause: undefined, stopDate: undefined });
    this.main.add("ExecutionRedriven", {
      executionRedrivenEventDetails: { redriveCount: this.redriveCount },
    });
    return this;
  }

  describe(): Record<string, unknown> {
    const { executionArn, stateMachineArn, name, status, input, output, error, cause, startDate, stopDate } =
      this;
    const included = { included: true };
    return {
      ...{
        executionArn,
        stateMachineArn,
        name,
        status,
        startDate,
        stopDate,
        error,
        cause,
        input,
        inputDetails: included,
      },
      ...(output !== undefined && { output, outputDetails: included }),
      redriveCount: this.redriveCount,
      redriveStatus: this.isRunning || status === "SUCCEEDED" ? "NOT_REDRIVABLE" : "REDRIVABLE",
    };
  }

  #close(status: string): this {
    this.status = status;
    this.stopDate = seconds();
    for (const token of this.tokens) token.open = false;
    return this;
  }
}
