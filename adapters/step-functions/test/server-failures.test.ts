/** What no emulator shows, through a whole Taskferry server: every failure ends in a task that tells the truth. */
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { ProtocolExecution } from "../emulator/src/protocol-execution.js";
import { acceptThenRefuse, amend, cut, ProtocolServer, refuse } from "../emulator/src/protocol-server.js";
import { type StepFunctionsOptions, stepFunctions } from "../src/index.js";
import { serveHere, type TaskClient, textOf, type WireTask } from "./serving.js";

interface Stage {
  readonly server: ProtocolServer;
  readonly tasks: TaskClient;
}

async function open(options: Partial<StepFunctionsOptions> = {}): Promise<Stage> {
  const server = await ProtocolServer.open();
  onTestFinished(() => server.close());
  const stateMachineArn = server.createMachine("m");
  // One attempt: the SDK's own would hide the failures from the server. Nothing has to be spared here.
  const adapter = stepFunctions({
    stateMachineArn,
    client: server.client(1),
    readsPerSecond: 1000,
    appearsWithinMs: 2_000,
    ...options,
  });
  return { server, tasks: await serveHere({ run: adapter }) };
}

/** The one execution, once it is there. */
const started = ({ server }: Stage): Promise<ProtocolExecution> =>
  vi.waitFor(() => server.execution(), { timeout: 10_000, interval: 5 });

/** Waits until an operation was called so many times more. */
async function calledAgain({ server }: Stage, operation: string, times = 2): Promise<void> {
  const wanted = server.countOf(operation) + times;
  await vi.waitFor(() => expect(server.countOf(operation)).toBeGreaterThanOrEqual(wanted), {
    timeout: 20_000,
    interval: 5,
  });
}

const succeed = async (stage: Stage) => void (await started(stage)).succeed({ ok: true });

interface Failure {
  readonly what: string;
  readonly options?: Partial<StepFunctionsOptions>;
  /** Before the call. */
  readonly arrange?: (server: ProtocolServer) => void;
  /** What happens to the execution. */
  readonly happens: (stage: Stage, taskId: string) => Promise<void>;
  /** `ok`: completed with the machine's output; else what the task says. */
  readonly ends: "ok" | { readonly status: string; readonly says: RegExp; readonly isError?: boolean };
  /** How many executions there are in the end. */
  readonly executions?: number;
}

const times = <Item>(count: number, item: Item): Item[] => Array.from({ length: count }, () => item);

const FAILURES: readonly Failure[] = [
  {
    what: "ExecutionDoesNotExist, then RUNNING",
    arrange: (server) => server.next("DescribeExecution", ...times(2, refuse("ExecutionDoesNotExist"))),
    happens: async (stage, taskId) => {
      await stage.tasks.until(taskId, "working", () =>
        expect(stage.server.countOf("DescribeExecution")).toBeGreaterThan(2),
      );
      await succeed(stage);
    },
    ends: "ok",
  },
  {
    what: "an execution that never appears",
    options: { appearsWithinMs: 50 },
    arrange: (server) => server.always("DescribeExecution", refuse("ExecutionDoesNotExist")),
    happens: async () => {},
    ends: { status: "failed", says: /gone at aws-step-functions.*does not exist/ },
  },
  {
    what: "an execution that was there and is no more",
    happens: async (stage, taskId) => {
      await stage.tasks.until(taskId, "working", ({ statusMessage }) =>
        expect(statusMessage).toBe("In state Work"),
      );
      stage.server.executions.clear();
    },
    arrange: (server) =>
      server.next("GetExecutionHistory", (operate) => {
        server.execution().main.enter("Work");
        return operate();
      }),
    ends: { status: "failed", says: /gone at aws-step-functions/ },
    executions: 0,
  },
  {
    what: "SUCCEEDED without its output, then with it",
    happens: async (stage, taskId) => {
      const execution = (await started(stage)).succeed({ ok: true });
      const { output } = execution;
      execution.output = undefined;
      await stage.tasks.until(taskId, "working", ({ statusMessage }) =>
        expect(statusMessage).toBe("Finished; its output is not there yet"),
      );
      execution.output = output;
    },
    ends: "ok",
  },
  {
    what: "a burst of throttling, at the start and while it runs",
    arrange: (server) => {
      server.next("StartExecution", ...times(2, refuse("ThrottlingException")));
      server.next("DescribeExecution", ...times(3, refuse("ThrottlingException")));
    },
    happens: async (stage, taskId) => {
      await started(stage);
      // The reads that are refused cost the client nothing.
      await stage.tasks.until(taskId, "working");
      await succeed(stage);
    },
    ends: "ok",
  },
  {
    what: "PENDING_REDRIVE",
    happens: async (stage, taskId) => {
      (await started(stage)).status = "PENDING_REDRIVE";
      await calledAgain(stage, "DescribeExecution");
      expect((await stage.tasks.get(taskId)).status).toBe("working");
      await succeed(stage);
    },
    ends: "ok",
  },
  {
    what: "a status word that nobody knows",
    happens: async (stage, taskId) => {
      const execution = await started(stage);
      execution.status = "HIBERNATING";
      await calledAgain(stage, "DescribeExecution");
      expect((await stage.tasks.get(taskId)).status).toBe("working");
      await succeed(stage);
    },
    ends: "ok",
  },
  {
    what: "a redrive before the end was read: the task is about its own attempt",
    happens: async (stage) => {
      const execution = await started(stage);
      await calledAgain(stage, "DescribeExecution");
      stage.server.next("DescribeExecution", refuse("ServiceUnavailable", 503));
      execution.main.enter("Work");
      execution.fail("Order.TooMuch", "over the limit").redrive();
    },
    ends: { status: "completed", says: /Order\.TooMuch.*over the limit/, isError: true },
  },
  {
    what: "a 5xx after the start was accepted",
    arrange: (server) =>
      server.next("StartExecution", ...times(2, acceptThenRefuse("InternalServerError", 500))),
    happens: succeed,
    ends: "ok",
  },
  {
    what: "a connection that is cut after the start was accepted, and an execution that ends before the next one",
    arrange: (server) =>
      server.next("StartExecution", async (operate, input) => {
        await operate();
        server.execution().succeed({ ok: true });
        return cut("before")(operate, input);
      }),
    happens: async () => {},
    ends: "ok",
  },
  {
    what: "a connection that is cut before the start was sent",
    arrange: (server) => server.next("StartExecution", ...times(2, cut("before"))),
    happens: succeed,
    ends: "ok",
  },
  {
    what: "a machine that is deleted in mid-run: its execution goes on",
    happens: async (stage) => {
      const execution = await started(stage);
      stage.server.machines.clear();
      await calledAgain(stage, "DescribeExecution");
      execution.succeed({ ok: true });
    },
    ends: "ok",
  },
  {
    what: "a machine that is being deleted before the start",
    arrange: (server) => void server.createMachine("m", { status: "DELETING" }),
    happens: async () => {},
    ends: { status: "failed", says: /is being deleted/ },
    executions: 0,
  },
  {
    what: "a KMS key that the start may not use",
    arrange: (server) => server.always("StartExecution", refuse("KmsAccessDeniedException")),
    happens: async () => {},
    ends: { status: "failed", says: /may not use the state machine's KMS key/ },
    executions: 0,
  },
  {
    what: "a KMS key that is disabled in mid-run, and enabled again",
    happens: async (stage, taskId) => {
      const execution = await started(stage);
      stage.server.always("DescribeExecution", refuse("KmsInvalidStateException"));
      await calledAgain(stage, "DescribeExecution");
      expect((await stage.tasks.get(taskId)).status).toBe("working");
      stage.server.always("DescribeExecution", undefined);
      execution.succeed({ ok: true });
    },
    ends: "ok",
  },
  {
    what: "credentials that expire before the start and in mid-run",
    arrange: (server) => server.next("StartExecution", ...times(2, refuse("ExpiredTokenException"))),
    happens: async (stage, taskId) => {
      const execution = await started(stage);
      stage.server.always("*", refuse("ExpiredTokenException"));
      await calledAgain(stage, "DescribeExecution");
      expect((await stage.tasks.get(taskId)).status).toBe("working");
      stage.server.always("*", undefined);
      execution.succeed({ ok: true });
    },
    ends: "ok",
  },
  {
    what: "credentials that AWS does not know",
    arrange: (server) => server.always("*", refuse("UnrecognizedClientException", 403)),
    happens: async () => {},
    ends: { status: "failed", says: /does not accept the server's credentials/ },
    executions: 0,
  },
  {
    what: "a history that may not be read, and a failure without one",
    arrange: (server) => server.always("GetExecutionHistory", refuse("AccessDeniedException")),
    happens: async (stage) => void (await started(stage)).fail("Order.TooMuch", "over the limit"),
    ends: { status: "completed", says: /Order\.TooMuch: over the limit/, isError: true },
  },
  {
    what: "an answer from DescribeExecution that is empty",
    arrange: (server) =>
      server.next(
        "DescribeExecution",
        ...times(
          2,
          amend(() => ({})),
        ),
      ),
    happens: async (stage) => {
      await started(stage);
      await calledAgain(stage, "DescribeExecution", 3);
      await succeed(stage);
    },
    ends: "ok",
  },
];

describe("a failure ends in a task that tells the truth", { timeout: 60_000 }, () => {
  it.each(FAILURES)("$what", async ({ options, arrange, happens, ends, executions = 1 }) => {
    const stage = await open(options);
    arrange?.(stage.server);
    const taskId = await stage.tasks.start("run", { amount: 1 });
    await happens(stage, taskId);
    const task = await stage.tasks.ended(taskId);
    if (ends === "ok") {
      expect(task).toMatchObject({ status: "completed", result: { structuredContent: { ok: true } } });
      expect(task.result?.isError).not.toBe(true);
    } else {
      expect(task.status).toBe(ends.status);
      expect(wordsOf(task)).toMatch(ends.says);
      expect(task.result?.isError).toBe(ends.isError);
    }
    expect(stage.server.executions.size).toBe(executions);
  });

  it("a redrive after the end changes nothing", async () => {
    const stage = await open();
    const taskId = await stage.tasks.start("run", {});
    const execution = await started(stage);
    execution.fail("Order.TooMuch", "over the limit");
    const first = await stage.tasks.ended(taskId);
    execution.redrive().succeed({ ok: true });
    expect(await stage.tasks.get(taskId)).toEqual(first);
    expect(textOf(first)).toContain("Order.TooMuch");
  });

  it("a task token with + / and = is answered byte for byte", async () => {
    const stage = await open();
    const taskId = await stage.tasks.start("run", {});
    const execution = await started(stage);
    const token = execution.main.waitForToken("Ask", (taskToken) => ({
      MessageBody: { taskToken, message: "Go?" },
    }));
    expect(token.token).toMatch(/\+.*\/.*=$/);
    const { inputRequests = {} } = await stage.tasks.until(taskId, "input_required");
    await stage.tasks.answer(taskId, Object.keys(inputRequests)[0] ?? "", {});
    await vi.waitFor(() => expect(token.open).toBe(false), { timeout: 10_000 });
    const sent = stage.server.calls.filter(({ operation }) => operation === "SendTaskSuccess");
    expect(sent.map(({ input }) => input.taskToken)).toEqual([token.token]);
    execution.succeed({ ok: true });
    expect((await stage.tasks.ended(taskId)).status).toBe("completed");
  });

  it("an answer whose token has died meanwhile is told as not delivered, and the run goes on", async () => {
    const stage = await open();
    const taskId = await stage.tasks.start("run", {});
    const execution = await started(stage);
    const token = execution.main.waitForToken("Ask", (taskToken) => ({
      MessageBody: { taskToken, message: "Go?" },
    }));
    const { inputRequests = {} } = await stage.tasks.until(taskId, "input_required");
    stage.server.always("DescribeExecution", refuse("ThrottlingException"));
    token.open = false;
    await stage.tasks.answer(taskId, Object.keys(inputRequests)[0] ?? "", {});
    await stage.tasks.until(taskId, ["working", "input_required"], ({ statusMessage }) =>
      expect(statusMessage).toMatch(/could not be delivered.*answered elsewhere/),
    );
    token.branch.add("TaskTimedOut", { taskTimedOutEventDetails: { error: "States.Timeout" } });
    stage.server.always("DescribeExecution", undefined);
    execution.succeed({ ok: true });
    expect((await stage.tasks.ended(taskId)).status).toBe("completed");
  });

  it("a cancel is owed until the stop goes through", async () => {
    const stage = await open();
    const taskId = await stage.tasks.start("run", {});
    const execution = await started(stage);
    stage.server.next("StopExecution", refuse("ThrottlingException"), cut("before"));
    await stage.tasks.cancel(taskId);
    expect((await stage.tasks.ended(taskId)).status).toBe("cancelled");
    expect(execution.status).toBe("ABORTED");
    expect(stage.server.countOf("StopExecution")).toBe(3);
  });

  it("a cancel that comes after the end changes nothing", async () => {
    const stage = await open();
    const taskId = await stage.tasks.start("run", {});
    await succeed(stage);
    await stage.tasks.cancel(taskId);
    const { status, result } = await stage.tasks.ended(taskId);
    expect({ status, value: result?.structuredContent }).toEqual({
      status: "completed",
      value: { ok: true },
    });
  });
});

function wordsOf(task: WireTask): string {
  return [textOf(task), task.error?.message ?? ""].join("\n");
}
