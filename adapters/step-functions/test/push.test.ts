import { describe, expect, it } from "vitest";
import { explainSfn, type PushOptions, stepFunctions } from "../src/index.js";

const HOME = "arn:aws:states:us-east-1:123456789012";
const ARN = `${HOME}:execution:order:run-1`;

/** As the EventBridge reference shows it. */
function event(executionArn = ARN, status = "SUCCEEDED") {
  const stateMachineArn = executionArn.replace("execution", "stateMachine").split(":").slice(0, 7).join(":");
  return {
    version: "0",
    id: "315c1398-40ff-a850-213b-158f73e60175",
    "detail-type": "Step Functions Execution Status Change",
    source: "aws.states",
    account: "123456789012",
    time: "2026-11-26T19:42:21Z",
    region: "us-east-1",
    resources: [executionArn],
    detail: {
      executionArn,
      stateMachineArn,
      name: "run-1",
      status,
      startDate: 1551225271984,
      stopDate: 1551225342000,
      input: "{}",
      output: '"Hello"',
      inputDetails: { included: true },
      outputDetails: { included: true },
    },
  };
}

function deliver(body: unknown, push: PushOptions = { trusted: true }, headers: Record<string, string> = {}) {
  const adapter = stepFunctions({ stateMachineArn: `${HOME}:stateMachine:order:PROD`, push });
  const bytes = new TextEncoder().encode(typeof body === "string" ? body : JSON.stringify(body));
  return adapter.events?.({ headers, body: bytes, signal: new AbortController().signal });
}

describe("EventBridge deliveries", () => {
  const text = JSON.stringify(event());
  it.each([
    ["itself, from an HTTP target", event()],
    ["as an SQS message", { MessageId: "1", Body: text }],
    ["as what ReceiveMessage answers", { Messages: [{ Body: text }, { Body: text }] }],
    ["as what a queue gives to Lambda", { Records: [{ eventSource: "aws:sqs", body: text }] }],
    ["by SNS through SQS", { Records: [{ body: JSON.stringify({ Type: "Notification", Message: text }) }] }],
    ["in a list", [event()]],
  ])("name the execution: %s", async (_how, body) => {
    expect(await deliver(body)).toEqual([{ executionArn: ARN }]);
  });

  it("name several executions of one batch", async () => {
    const body = {
      Messages: [event(), event(`${HOME}:execution:order:run-2`, "RUNNING")].map((one) => ({
        Body: JSON.stringify(one),
      })),
    };
    expect(await deliver(body)).toEqual([
      { executionArn: ARN },
      { executionArn: `${HOME}:execution:order:run-2` },
    ]);
  });

  it.each([
    ["another machine", event(`${HOME}:execution:orders:run-1`)],
    ["another account", event("arn:aws:states:us-east-1:999999999999:execution:order:run-1")],
    ["another source", { ...event(), source: "my.app" }],
    ["another kind of event", { ...event(), "detail-type": "Step Functions Map Run Status Change" }],
    ["no ARN", { ...event(), detail: { executionArn: 7 } }],
    ["no event", { hello: "world" }],
    ["no JSON", "<xml/>"],
    ["nothing", ""],
  ])("tell nothing when they are about %s", async (_what, body) => {
    expect(await deliver(body)).toEqual([]);
  });
});

describe("authenticity", () => {
  const push = { secret: "open sesame" };

  it("is a secret in a header", async () => {
    expect(await deliver(event(), push, { "x-taskferry-secret": "open sesame" })).toEqual([
      { executionArn: ARN },
    ]);
    expect(await deliver(event(), { ...push, header: "X-Own" }, { "x-own": "open sesame" })).toHaveLength(1);
  });

  it.each([
    [{}],
    [{ "x-taskferry-secret": "" }],
    [{ "x-taskferry-secret": "open sesamE" }],
    [{ authorization: "open sesame" }],
  ])("is not %j", async (headers) => {
    const error = await deliver(event(), push, headers)?.catch((error: unknown) => error);
    expect(explainSfn(error)).toMatchObject({ kind: "rejected", code: "NotAuthentic" });
  });

  it("is never an empty secret", async () => {
    await expect(deliver(event(), { secret: "" }, { "x-taskferry-secret": "" })).rejects.toThrow();
  });

  it("is asked of the operator: without options, deliveries are not taken at all", () => {
    expect(stepFunctions({ stateMachineArn: `${HOME}:stateMachine:order` }).events).toBeUndefined();
  });
});
