import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { PROJECT_NUMBER } from "../emulator/src/protocol-server.js";
import { type Harness, harness, LOCATION, PROJECT, readRequest, signal, TRANSPORTS } from "./harness.js";

describe.each(TRANSPORTS)("adopting over %s", (transport) => {
  let h: Harness;
  beforeEach(async () => {
    h = await harness(transport);
    h.cloud.deploy({ id: "orders", location: LOCATION });
  });
  afterEach(() => h.close());

  test.each([
    ["its id", (id: string) => id],
    [
      "its name",
      (id: string) => `projects/${PROJECT}/locations/${LOCATION}/workflows/orders/executions/${id}`,
    ],
    [
      "its name with the project's number",
      (id: string) => `projects/${PROJECT_NUMBER}/locations/${LOCATION}/workflows/orders/executions/${id}`,
    ],
  ])("an execution that somebody else started is taken by %s", async (_how, name) => {
    const { id } = h.cloud.create(LOCATION, "orders", {});
    const adapter = h.adapter();
    const run = await adapter.adopt(name(id), { signal: signal() });
    expect(run).toMatchObject({
      ref: `projects/${PROJECT}/locations/${LOCATION}/workflows/orders/executions/${id}`,
      state: { status: "working" },
    });
    h.cloud.succeed(id, "1");
    expect((await adapter.read(run.ref, readRequest())).output).toEqual({ value: 1 });
  });

  test.each([
    `projects/${PROJECT}/locations/${LOCATION}/workflows/others/executions/x`,
    `projects/${PROJECT}/locations/europe-west1/workflows/orders/executions/x`,
    "../../secrets",
    "",
  ])("%j is refused without asking Google", async (name) => {
    await expect(h.adapter().adopt(name, { signal: signal() })).rejects.toMatchObject({
      verdict: { kind: "rejected", code: "WRONG_WORKFLOW" },
    });
    expect(h.cloud.calls).toEqual([]);
  });

  test("one that does not exist is gone", async () => {
    const adapter = h.adapter();
    const error = await adapter.adopt("0000", { signal: signal() }).catch((e: unknown) => e);
    expect(adapter.explain?.(error)).toMatchObject({ kind: "gone" });
  });

  test("a stored reference that is none is refused", async () => {
    await expect(h.adapter().read({ arn: "x" }, readRequest())).rejects.toMatchObject({
      verdict: { code: "BAD_REF" },
    });
  });
});

describe("names", () => {
  test.each([{ project: "p/../q" }, { location: "" }, { workflow: "w?x=1" }])(
    "%j is not a plain name",
    async (fields) => {
      const h = await harness("REST");
      expect(() => h.adapter(fields)).toThrow(TypeError);
      await h.close();
    },
  );
});
