/**
 * A small Google Cloud Workflows: executions that scripts drive, with the states, labels, steps and callbacks of the real
 * one. It speaks no protocol: protocol-server.ts puts the vendor's gRPC and REST in front of it.
 */
import { randomUUID } from "node:crypto";

export type State = string | number;

export interface CloudCallback {
  readonly id: string;
  readonly method: string;
  waiters: number;
  readonly payloads: string[];
  deliver?: ((payload: string) => void) | undefined;
}

export interface CloudExecution {
  readonly id: string;
  readonly workflow: string;
  readonly argument: string;
  readonly labels: Record<string, string>;
  readonly callLogLevel: string | undefined;
  readonly disableOverflow: boolean;
  readonly revision: string;
  readonly createdMs: number;
  state: State;
  startedMs?: number | undefined;
  endedMs?: number | undefined;
  steps: { routine: string; step: string }[];
  result?: string;
  error?: CloudError;
  stateError?: { details: string; type: string };
  /** `false`: created, but lists do not show it yet. */
  listed: boolean;
  readonly callbacks: Map<string, CloudCallback>;
}

export interface CloudError {
  readonly payload: string;
  readonly context?: string;
  readonly stackTrace?: { elements: { step: string; routine: string; position?: { line: string } }[] };
}

const ENDS: readonly State[] = ["SUCCEEDED", "FAILED", "CANCELLED"];

/** An error with the canonical code that both protocols know. */
export class CloudFault extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly retryDelaySeconds?: number,
  ) {
    super(message);
  }
}

/** What a script's execution fails with. */
export class WorkflowFailure extends Error {
  constructor(readonly error: CloudError) {
    super(error.payload);
  }
}

/** What a script can do. */
export interface ScriptContext {
  readonly args: unknown;
  readonly execution: CloudExecution;
  step(...steps: string[]): void;
  /** Creates an endpoint and resolves to it. */
  endpoint(method?: string): CloudCallback;
  /** Waits for a call; rejects when `timedOut` resolves first. */
  waitFor(endpoint: CloudCallback, timedOut?: Promise<unknown>): Promise<unknown>;
}

export type Script = (context: ScriptContext) => unknown;

export interface DeployedWorkflow {
  readonly id: string;
  readonly location: string;
  readonly description?: string;
  readonly state?: string;
  readonly script?: Script;
}

export type Operation =
  | "createExecution"
  | "getExecution"
  | "listExecutions"
  | "cancelExecution"
  | "listCallbacks"
  | "sendCallback"
  | "listWorkflows";

/** A refusal, or one that quotes what was asked. */
export type Refusal = CloudFault | ((request: unknown) => CloudFault);

/** What happens to the next call of an operation instead of, or after, its effect. */
export type Fault =
  | { readonly kind: "refuse"; readonly fault: Refusal; readonly times?: number }
  /** The connection breaks before anything happens. */
  | { readonly kind: "cut"; readonly times?: number }
  /** It happens, but the caller's connection breaks before the answer. */
  | { readonly kind: "loseAnswer"; readonly times?: number }
  /** It happens, and the caller waits for ever. */
  | { readonly kind: "holdAnswer"; readonly times?: number };

/** A fault as a protocol front has to play it. */
export type DueFault =
  | Exclude<Fault, { kind: "refuse" }>
  | { readonly kind: "refuse"; readonly fault: CloudFault };

export class Cloud {
  readonly executions = new Map<string, CloudExecution>();
  readonly calls: { operation: Operation; request: unknown; authorization?: string | undefined }[] = [];
  readonly unreachable: string[] = [];
  /** Lists show what is created from now on only when this is set. */
  listsNewExecutions = true;
  /** Happens to every call that no other fault is injected for. */
  always: Fault | undefined;
  /** Called after every change of an execution's state: what Google writes a log entry about. */
  onState: ((execution: CloudExecution) => void) | undefined;
  /** Executions whose cancel is taken and has no effect yet. */
  readonly goesOnAfterCancel = new Set<string>();
  private slotCount = Number.POSITIVE_INFINITY;
  private readonly workflows: DeployedWorkflow[] = [];
  private readonly faults = new Map<Operation, Fault[]>();
  private readonly watchers = new Set<() => void>();

  /** Executions that run at once; further ones are QUEUED until one of these ends or there are more slots. */
  get slots(): number {
    return this.slotCount;
  }

  set slots(count: number) {
    this.slotCount = count;
    this.startQueued();
  }

  deploy(workflow: DeployedWorkflow): void {
    this.workflows.push(workflow);
  }

  /** Makes the next calls of an operation go wrong. */
  inject(operation: Operation, fault: Fault): void {
    const all = Array.from({ length: fault.times ?? 1 }, () => fault);
    this.faults.set(operation, [...(this.faults.get(operation) ?? []), ...all]);
  }

  /** For protocol fronts: records a call and takes the fault that is due, if any. */
  arrive(operation: Operation, request: unknown, authorization?: string): DueFault | undefined {
    this.calls.push({ operation, request, authorization });
    this.changed();
    const fault = this.faults.get(operation)?.shift() ?? this.always;
    if (fault?.kind !== "refuse") return fault;
    return { kind: "refuse", fault: fault.fault instanceof CloudFault ? fault.fault : fault.fault(request) };
  }

  count(operation: Operation): number {
    return this.calls.filter((call) => call.operation === operation).length;
  }

  /** Resolves once the condition holds. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      await new Promise<void>((resolve) => {
        const watcher = () => {
          this.watchers.delete(watcher);
          resolve();
        };
        this.watchers.add(watcher);
      });
    }
  }

  create(
    location: string,
    workflow: string,
    fields: Partial<CloudExecution> & { argument?: string },
  ): CloudExecution {
    const deployed = this.workflows.find(({ id, location: where }) => id === workflow && where === location);
    if (deployed === undefined) throw new CloudFault("NOT_FOUND", `Workflow ${workflow} does not exist`);
    const argument = fields.argument ?? "null";
    if (Buffer.byteLength(argument) > 32_768)
      throw new CloudFault("INVALID_ARGUMENT", "argument is too large");
    const queued = this.running >= this.slots;
    if (queued && fields.disableOverflow) throw new CloudFault("RESOURCE_EXHAUSTED", "concurrent executions");
    const now = Date.now();
    const execution: CloudExecution = {
      id: randomUUID(),
      workflow,
      labels: {},
      callLogLevel: undefined,
      disableOverflow: false,
      revision: "000001-27f",
      createdMs: now,
      startedMs: queued ? undefined : now,
      state: queued ? "QUEUED" : "ACTIVE",
      steps: [],
      listed: this.listsNewExecutions,
      callbacks: new Map(),
      ...fields,
      argument,
    };
    this.executions.set(execution.id, execution);
    if (deployed.script !== undefined && !queued) void this.run(execution, deployed.script);
    this.stateChanged(execution);
    return execution;
  }

  get(id: string): CloudExecution {
    const execution = this.executions.get(id);
    if (execution === undefined) throw new CloudFault("NOT_FOUND", `Execution ${id} does not exist`);
    return execution;
  }

  /** Newest first, as the vendor documents it. */
  list(workflow: string): CloudExecution[] {
    const all = [...this.executions.values()].filter(
      (execution) => execution.workflow === workflow && execution.listed,
    );
    return all.reverse().sort((a, b) => b.createdMs - a.createdMs);
  }

  listWorkflows(location: string): DeployedWorkflow[] {
    return this.workflows.filter((workflow) => location === "-" || workflow.location === location);
  }

  update(id: string, fields: Partial<CloudExecution>): void {
    const execution = this.get(id);
    const before = execution.state;
    Object.assign(execution, fields);
    if (execution.state === before) this.changed();
    else this.stateChanged(execution);
  }

  fail(id: string, error: CloudError): void {
    this.end(id, { state: "FAILED", error });
  }

  succeed(id: string, result: string): void {
    this.end(id, { state: "SUCCEEDED", result });
  }

  cancel(id: string): CloudExecution {
    const execution = this.get(id);
    if (ENDS.includes(execution.state)) {
      throw new CloudFault("FAILED_PRECONDITION", `Execution ${id} has ended`);
    }
    if (this.goesOnAfterCancel.has(id)) return execution;
    this.end(id, { state: "CANCELLED", error: { payload: '"Execution cancelled"' } });
    return execution;
  }

  send(id: string, callbackId: string, method: string, payload: string): void {
    const callback = this.get(id).callbacks.get(callbackId);
    if (callback === undefined) throw new CloudFault("NOT_FOUND", "Callback does not exist");
    if (callback.method !== method)
      throw new CloudFault("INVALID_ARGUMENT", `Only ${callback.method} is accepted`);
    if (callback.deliver !== undefined) callback.deliver(payload);
    else callback.payloads.push(payload);
    this.changed();
  }

  private end(id: string, fields: Partial<CloudExecution>): void {
    const execution = this.get(id);
    if (ENDS.includes(execution.state)) return;
    execution.callbacks.clear();
    this.update(id, { ...fields, endedMs: Date.now() });
    this.startQueued();
  }

  private get running(): number {
    return [...this.executions.values()].filter(({ state }) => state === "ACTIVE").length;
  }

  /** Oldest first. */
  private startQueued(): void {
    for (const execution of this.executions.values()) {
      if (execution.state !== "QUEUED") continue;
      if (this.running >= this.slots) return;
      this.update(execution.id, { state: "ACTIVE", startedMs: Date.now() });
      const script = this.workflows.find(({ id }) => id === execution.workflow)?.script;
      if (script !== undefined) void this.run(execution, script);
    }
  }

  private stateChanged(execution: CloudExecution): void {
    this.onState?.(execution);
    this.changed();
  }

  private async run(execution: CloudExecution, script: Script): Promise<void> {
    const args: unknown = JSON.parse(execution.argument);
    const context: ScriptContext = {
      args,
      execution,
      step: (...steps) =>
        this.update(execution.id, { steps: steps.map((step) => ({ routine: "main", step })) }),
      endpoint: (method = "POST") => {
        const callback: CloudCallback = { id: randomUUID(), method, waiters: 0, payloads: [] };
        execution.callbacks.set(callback.id, callback);
        return callback;
      },
      waitFor: (endpoint, timedOut) => this.wait(endpoint, timedOut),
    };
    try {
      const result = await script(context);
      this.succeed(execution.id, JSON.stringify(result ?? null));
    } catch (error) {
      if (!(error instanceof WorkflowFailure)) throw error;
      this.fail(execution.id, error.error);
    }
  }

  private async wait(endpoint: CloudCallback, timedOut?: Promise<unknown>): Promise<unknown> {
    endpoint.waiters += 1;
    this.changed();
    const called = new Promise<string>((resolve) => {
      endpoint.deliver = resolve;
    });
    try {
      const payload = await Promise.race([called, timedOut?.then(() => undefined) ?? called]);
      if (payload === undefined)
        throw new WorkflowFailure({ payload: '{"message":"timed out","tags":["TimeoutError"]}' });
      return JSON.parse(payload) as unknown;
    } finally {
      endpoint.waiters -= 1;
      endpoint.deliver = undefined;
      this.changed();
    }
  }

  private changed(): void {
    for (const watcher of [...this.watchers]) watcher();
  }
}
