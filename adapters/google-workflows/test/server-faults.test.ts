/** What goes wrong between a Taskferry server and Google: each fault ends in a task that tells the truth, and in one execution at most. */
import { describe, expect, test } from "vitest";
import { CloudFault, type Fault, type Operation } from "../emulator/src/cloud.js";
import type { GoogleWorkflowsOptions } from "../src/index.js";
import { lookUntil, type Served, serve, theExecution, WAYS } from "./serving.js";

/** Google's words may quote what was asked; none of them may reach a client. */
const QUOTED = "the argument 4711";
const refuse = (code: string, times = 1): Fault => ({
  kind: "refuse",
  // A quota asks for a short pause here, so that the tests need not wait for a minute's end.
  fault: new CloudFault(code, QUOTED, code === "RESOURCE_EXHAUSTED" ? 0.05 : undefined),
  times,
});

interface Case {
  readonly what: string;
  readonly faults: readonly (readonly [Operation, Fault])[];
  readonly adapter?: Partial<GoogleWorkflowsOptions>;
  readonly input?: object;
}

/** The execution is made once, in spite of all, and its result arrives. */
const STARTED: readonly Case[] = [
  { what: "quota used up, twice (8, 429)", faults: [["createExecution", refuse("RESOURCE_EXHAUSTED", 2)]] },
  { what: "unavailable (14, 503)", faults: [["createExecution", refuse("UNAVAILABLE")]] },
  { what: "internal error", faults: [["createExecution", refuse("INTERNAL")]] },
  { what: "deadline exceeded", faults: [["createExecution", refuse("DEADLINE_EXCEEDED")]] },
  { what: "a connection that breaks before", faults: [["createExecution", { kind: "cut" }]] },
  { what: "a connection that breaks after", faults: [["createExecution", { kind: "loseAnswer" }]] },
  {
    what: "a lost answer, and a list that fails in every way that passes",
    faults: [
      ["createExecution", { kind: "loseAnswer" }],
      ["listExecutions", refuse("UNAVAILABLE")],
      ["listExecutions", { kind: "cut" }],
      ["listExecutions", refuse("RESOURCE_EXHAUSTED")],
    ],
  },
];

/** Nothing is started, and the client is told why. */
const REFUSED: readonly (Case & { readonly told: RegExp })[] = [
  {
    what: "permission denied (7, 403)",
    faults: [["createExecution", refuse("PERMISSION_DENIED")]],
    told: /lacks a role/,
  },
  {
    what: "unauthenticated (16, 401)",
    faults: [["createExecution", refuse("UNAUTHENTICATED")]],
    told: /does not accept the server's credentials/,
  },
  {
    what: "invalid argument (3, 400)",
    faults: [["createExecution", refuse("INVALID_ARGUMENT")]],
    told: /refused the request as invalid/,
  },
  {
    what: "failed precondition (9, 400)",
    faults: [["createExecution", refuse("FAILED_PRECONDITION")]],
    told: /the state does not allow it/,
  },
  {
    what: "a workflow that is not there (5, 404)",
    faults: [],
    adapter: { workflow: "missing" },
    told: /There is no workflow missing/,
  },
  {
    what: "an argument that is too large",
    faults: [],
    input: { text: "x".repeat(32_768) },
    told: /has 32779 bytes, Google Cloud Workflows takes 32768/,
  },
];

/** A read that fails says nothing about the execution: the task goes on, and ends as the execution does. */
const UNREADABLE: readonly Case[] = [
  { what: "quota used up (8, 429)", faults: [["getExecution", refuse("RESOURCE_EXHAUSTED")]] },
  { what: "unavailable (14, 503)", faults: [["getExecution", refuse("UNAVAILABLE", 2)]] },
  { what: "internal error (13, 500)", faults: [["getExecution", refuse("INTERNAL")]] },
  { what: "permission taken away for a while", faults: [["getExecution", refuse("PERMISSION_DENIED")]] },
  { what: "credentials that expire for a while", faults: [["getExecution", refuse("UNAUTHENTICATED")]] },
  { what: "connections that break", faults: [["getExecution", { kind: "cut" }]] },
  { what: "a call that is never answered", faults: [["getExecution", { kind: "holdAnswer" }]] },
];

describe.each(WAYS)("$generation over $transport", ({ transport, generation }) => {
  async function startWith({ faults, adapter, input }: Case) {
    const served: Served = await serve(transport, {
      ...(adapter && { adapter }),
      timing: { readDeadlineMs: 300 },
    });
    for (const [operation, fault] of faults) served.cloud.inject(operation, fault);
    const client = await served.connect(generation);
    return { cloud: served.cloud, client, task: await client.start(input) };
  }

  test.each(STARTED)("a start meets: $what", async (fault) => {
    const { cloud, client, task } = await startWith(fault);
    await lookUntil(client, task, ({ message }) => /^Running/.test(message));
    cloud.succeed((await theExecution(cloud)).id, '{"done":true}');
    expect(await client.end(task)).toMatchObject({ status: "completed", value: { done: true } });
    await theExecution(cloud);
  });

  test.each(REFUSED)("a start is refused: $what", async ({ told, ...fault }) => {
    const { cloud, client, task } = await startWith(fault);
    const end = await client.end(task);
    const { statusMessage = "" } = await client.look(task);
    const words = `${end.error ?? end.text} ${statusMessage}`;
    expect(end.status).toBe("failed");
    expect(words).toMatch(told);
    expect(words).not.toContain(QUOTED);
    expect(cloud.executions.size).toBe(0);
  });

  test("a start whose answer is lost, by an account that may not list: outcome unknown, and a link to look", async () => {
    const { cloud, client, task } = await startWith({
      what: "",
      faults: [
        ["createExecution", { kind: "loseAnswer" }],
        ["listExecutions", refuse("PERMISSION_DENIED")],
      ],
    });
    const end = await client.end(task);
    expect(end.status).toBe("failed");
    expect(end.error ?? end.text).toMatch(
      /Start outcome unknown.*lacks a role.*https:\/\/console\.cloud\.google\.com\/workflows\/workflow\/us-central1\/orders/s,
    );
    expect(cloud.count("createExecution")).toBe(1);
  });

  test("a start whose answer is lost, and a list that lags: found when it shows, never started again", async () => {
    const { cloud, connect } = await serve(transport, { adapter: { find: { appearsWithinMs: 4000 } } });
    cloud.listsNewExecutions = false;
    cloud.inject("createExecution", { kind: "loseAnswer" });
    const client = await connect(generation);
    const task = await client.start();
    await cloud.until(() => cloud.count("listExecutions") > 0);
    expect((await client.look(task)).status).toBe("working");
    const { id } = await theExecution(cloud);
    cloud.update(id, { listed: true });
    cloud.succeed(id, '"late"');
    expect(await client.end(task)).toMatchObject({ status: "completed", text: "late" });
    await theExecution(cloud);
  });

  test.each(UNREADABLE)("a read meets: $what", async (fault) => {
    const { cloud, client, task } = await startWith({ what: "", faults: [] });
    await lookUntil(client, task, ({ message }) => /^Running/.test(message));
    for (const [operation, injected] of fault.faults) cloud.inject(operation, injected);
    const wanted = fault.faults.reduce((sum, [, { times = 1 }]) => sum + times, 0);
    const asked = cloud.count("getExecution");
    const seen = await lookUntil(client, task, () => cloud.count("getExecution") >= asked + wanted);
    expect(seen.status).toBe("working");
    cloud.succeed((await theExecution(cloud)).id, '{"done":true}');
    expect(await client.end(task)).toMatchObject({ status: "completed", value: { done: true } });
    await theExecution(cloud);
  });

  test("an execution that is gone after it was seen is lost, and the task says so", async () => {
    const { cloud, client, task } = await startWith({ what: "", faults: [] });
    await lookUntil(client, task, ({ message }) => /^Running/.test(message));
    cloud.executions.clear();
    const end = await client.end(task);
    expect(end.status).toBe("failed");
    expect(end.error ?? end.text).toMatch(/gone/);
    expect(cloud.count("createExecution")).toBe(1);
  });

  test("an execution that is gone after its end leaves the result where it is", async () => {
    const { cloud, client, task } = await startWith({ what: "", faults: [] });
    cloud.succeed((await theExecution(cloud)).id, '"kept"');
    await client.end(task);
    cloud.executions.clear();
    const later = await client.look(task);
    expect(later.status).toBe("completed");
    const reads = cloud.count("getExecution");
    expect(await client.end(task)).toMatchObject({ status: "completed", text: "kept" });
    expect(cloud.count("getExecution")).toBe(reads);
  });
});
