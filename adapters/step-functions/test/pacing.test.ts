import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ProtocolServer, refuse } from "../emulator/src/protocol-server.js";
import { stepFunctions } from "../src/index.js";
import { Pacer } from "../src/pacing.js";
import { Run } from "./support.js";

describe("the interval between reads of one run", () => {
  it("grows with the runs in flight, and shrinks as they end", () => {
    const pacer = new Pacer(10);
    expect(pacer.running("a")).toBe(100);
    for (let index = 0; index < 99; index++) pacer.running(`b${index}`);
    expect(pacer.running("a")).toBe(10_000);
    for (let index = 0; index < 99; index++) pacer.ended(`b${index}`);
    expect(pacer.running("a")).toBe(100);
  });

  it("forgets runs that nobody reads any more", () => {
    const pacer = new Pacer(1);
    pacer.running("old", 0);
    expect(pacer.running("a", 599_999)).toBe(2000);
    expect(pacer.running("a", 600_000)).toBe(1000);
  });

  it("doubles with each throttle up to a bound, and comes back", () => {
    const pacer = new Pacer(1);
    pacer.running("a");
    pacer.throttled();
    expect(pacer.intervalMs).toBe(2000);
    for (let index = 0; index < 20; index++) pacer.throttled();
    expect(pacer.intervalMs).toBe(32_000);
    for (let index = 0; index < 300; index++) pacer.running("a");
    expect(pacer.intervalMs).toBe(1000);
  });
});

describe("an adapter", () => {
  let server: ProtocolServer;
  beforeEach(async () => {
    server = await ProtocolServer.open();
  });
  afterEach(() => server.close());

  it("shares its pace with the other machines of the account, but not with other accounts", async () => {
    // A rate of its own keeps this test's runs apart from others'.
    const options = { client: server.client(), readsPerSecond: 3.5 };
    const [one, two] = ["one", "two"].map((name) =>
      stepFunctions({ ...options, stateMachineArn: server.createMachine(name) }),
    );
    const first = await Run.start(one!, {});
    expect((await first.read()).nextReadMs).toBe(286);
    const second = await Run.start(two!, {});
    await second.read();
    expect((await first.read()).nextReadMs).toBe(571);
    server.execution((second.ref as { executionArn: string }).executionArn).succeed({});
    await second.read();
    expect((await first.read()).nextReadMs).toBe(286);
  });

  it("asks for more time after a throttle", async () => {
    const adapter = stepFunctions({
      client: server.client(1),
      readsPerSecond: 0.5,
      stateMachineArn: server.createMachine("slow"),
    });
    const run = await Run.start(adapter, {});
    expect((await run.read()).nextReadMs).toBe(2000);
    server.next("DescribeExecution", refuse("ThrottlingException"));
    const error = await run.read().catch((error: unknown) => error);
    expect(adapter.explain?.(error)).toMatchObject({ kind: "retry", retryAfterMs: 4000 });
  });
});
