/**
 * The adapter against gcw-emulator. It keeps no labels, steps or queue and names no waiters, so searching, questions and
 * the like are tested against the protocol server only.
 */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { googleWorkflows } from "../src/index.js";
import { type Emulator, findEmulator, isRequired, startEmulator } from "./emulator.js";
import { newKey, readRequest, readUntil, signal, TRANSPORTS } from "./harness.js";

const lane = await findEmulator();
const binary = "binary" in lane ? lane.binary : undefined;
if ("missing" in lane) console.warn(`gcw-emulator lane skipped: ${lane.missing}`);

test("the lane runs where it is required", () => {
  if (isRequired()) expect(lane).toHaveProperty("binary");
});

const STEPS = `
main:
  params: [args]
  steps:
    - call_shop:
        call: http.get
        args:
          url: \${args.url}
        result: answer
    - greet:
        assign:
          - text: \${"Hello, " + answer.body.name}
    - done:
        return:
          text: \${text}
          n: \${args.n}
`;

const FAILS = `
main:
  steps:
    - give_up:
        raise:
          code: 55
          message: "Out of stock"
`;

describe.skipIf(binary === undefined).each(TRANSPORTS)("gcw-emulator over %s", (transport) => {
  let emulator: Emulator;
  let shop: Server;
  let shopUrl: string;

  beforeAll(async () => {
    emulator = await startEmulator(binary as string);
    shop = createServer((_request, response) => {
      response.writeHead(200, { "content-type": "application/json" }).end('{"name":"Ada"}');
    });
    await new Promise<void>((resolve) => shop.listen(0, "127.0.0.1", resolve));
    shopUrl = `http://127.0.0.1:${(shop.address() as AddressInfo).port}/`;
    await emulator.deploy("demo", "us-central1", "steps", STEPS);
    await emulator.deploy("demo", "us-central1", "fails", FAILS);
  });
  afterAll(async () => {
    await emulator?.close();
    shop?.close();
  });

  const adapter = (workflow: string) =>
    googleWorkflows({
      project: "demo",
      location: "us-central1",
      workflow,
      apiEndpoint: emulator.grpcEndpoint,
      restEndpoint: emulator.restEndpoint,
      fallback: transport === "REST",
      insecure: true,
    });
  const hasEnded = ({ status }: { status: string }) => status === "completed";

  test("runs steps and an http call to its result", async () => {
    const steps = adapter("steps");
    const { ref } = await steps.start({
      key: newKey(),
      input: { url: shopUrl, n: 3 },
      retry: false,
      signal: signal(),
    });
    const state = await readUntil(steps, ref, hasEnded);
    expect(state).toMatchObject({ native: "SUCCEEDED", output: { value: { text: "Hello, Ada", n: 3 } } });
    await steps.close?.();
  });

  test("tells how the workflow failed", async () => {
    const fails = adapter("fails");
    const { ref } = await fails.start({ key: newKey(), input: {}, retry: false, signal: signal() });
    const state = await readUntil(fails, ref, hasEnded);
    expect(state.native).toBe("FAILED");
    expect(state.failure?.message).toContain("Out of stock");
    await fails.close?.();
  });

  test("a stop after the end is no error, and the result stands", async () => {
    const steps = adapter("steps");
    const { ref } = await steps.start({
      key: newKey(),
      input: { url: shopUrl, n: 1 },
      retry: false,
      signal: signal(),
    });
    await readUntil(steps, ref, hasEnded);
    await steps.stop?.(ref, { signal: signal(), stopsSent: 0, requestedAgoMs: 0 });
    expect((await steps.read(ref, readRequest())).native).toBe("SUCCEEDED");
    await steps.close?.();
  });

  test("a workflow that is not there is refused, an execution that is not there is gone", async () => {
    const missing = adapter("missing");
    await expect(
      missing.start({ key: newKey(), input: {}, retry: false, signal: signal() }),
    ).rejects.toMatchObject({
      verdict: { kind: "rejected", code: "NOT_FOUND" },
    });
    const error = await missing.adopt("0000", { signal: signal() }).catch((e: unknown) => e);
    expect(missing.explain?.(error)).toMatchObject({ kind: "gone" });
    await missing.close?.();
  });
});
