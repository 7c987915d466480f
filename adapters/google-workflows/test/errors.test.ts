import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { CloudFault } from "../emulator/src/cloud.js";
import { explainError } from "../src/errors.js";
import { googleWorkflows } from "../src/index.js";
import { type Harness, harness, newKey, readRequest, signal, TRANSPORTS } from "./harness.js";

const caught = (call: Promise<unknown> | undefined) =>
  Promise.resolve(call).then(
    () => undefined,
    (error: unknown) => error,
  );

describe.each(TRANSPORTS)("errors over %s", (transport) => {
  let h: Harness;
  beforeEach(async () => {
    h = await harness(transport);
    h.cloud.deploy({ id: "orders", location: "us-central1" });
  });
  afterEach(() => h.close());

  const start = (adapter = h.adapter()) =>
    adapter.start({ key: newKey(), input: {}, retry: false, signal: signal() });

  test.each([
    ["INVALID_ARGUMENT", "rejected"],
    ["FAILED_PRECONDITION", "rejected"],
    ["PERMISSION_DENIED", "rejected"],
    ["UNAUTHENTICATED", "rejected"],
    ["NOT_FOUND", "gone"],
    ["RESOURCE_EXHAUSTED", "retry"],
    ["UNAVAILABLE", "ambiguous"],
    ["DEADLINE_EXCEEDED", "ambiguous"],
    ["INTERNAL", "ambiguous"],
  ])("a read that ends with %s is %s", async (code, kind) => {
    const adapter = h.adapter();
    const { ref } = await start(adapter);
    h.cloud.inject("getExecution", { kind: "refuse", fault: new CloudFault(code, "secret argument 4711") });
    const error = await caught(adapter.read(ref, readRequest()));
    const verdict = adapter.explain?.(error);
    expect(verdict).toMatchObject({ kind, code });
    expect(verdict?.message ?? "").not.toContain("4711");
    // Nothing is tried again behind core's back, and the next read works.
    expect(h.cloud.count("getExecution")).toBe(1);
    expect((await adapter.read(ref, readRequest())).native).toBe("ACTIVE");
  });

  test("a start of a workflow that is not there is refused, not lost", async () => {
    const adapter = h.adapter({ workflow: "missing" });
    const error = await caught(start(adapter));
    expect(error).toMatchObject({ verdict: { kind: "rejected", code: "NOT_FOUND" } });
    expect((error as Error).message).toBe("There is no workflow missing");
  });

  test("an execution that has gone after it was seen is gone", async () => {
    const adapter = h.adapter();
    const { ref } = await start(adapter);
    await adapter.read(ref, readRequest());
    h.cloud.executions.clear();
    expect(adapter.explain?.(await caught(adapter.read(ref, readRequest())))).toMatchObject({ kind: "gone" });
    expect(
      adapter.explain?.(
        await caught(adapter.stop?.(ref, { signal: signal(), stopsSent: 0, requestedAgoMs: 0 })),
      ),
    ).toMatchObject({
      kind: "gone",
    });
  });

  test("a lost answer to a start is ambiguous", async () => {
    h.cloud.inject("createExecution", { kind: "loseAnswer" });
    const adapter = h.adapter();
    const verdict = adapter.explain?.(await caught(start(adapter)));
    expect(verdict?.kind ?? "ambiguous").toBe("ambiguous");
    expect(h.cloud.executions.size).toBe(1);
  });

  test("a server that is not there was not reached, so a start may be tried again", async () => {
    const gone = await harness(transport);
    const adapter = gone.adapter();
    await gone.server.close();
    expect(adapter.explain?.(await caught(start(adapter)))).toMatchObject({
      kind: "retry",
      code: "NOT_REACHED",
    });
    await gone.close();
  });

  test("quotas ask for a pause", async () => {
    const adapter = h.adapter();
    h.cloud.inject("createExecution", {
      kind: "refuse",
      fault: new CloudFault("RESOURCE_EXHAUSTED", "quota", 33),
    });
    const verdict = adapter.explain?.(await caught(start(adapter)));
    expect(verdict?.retryAfterMs).toBe(33_000);
    const fault = new CloudFault("RESOURCE_EXHAUSTED", "quota");
    h.cloud.inject("createExecution", { kind: "refuse", fault });
    expect(adapter.explain?.(await caught(start(adapter)))?.retryAfterMs).toBe(15_000);
  });

  test("gives up at once when core does", async () => {
    const adapter = h.adapter();
    const { ref } = await start(adapter);
    await expect(
      adapter.read(ref, readRequest({ signal: AbortSignal.abort(new Error("deadline")) })),
    ).rejects.toThrow("deadline");
    await expect(
      adapter.start({
        key: newKey(),
        input: {},
        retry: false,
        signal: AbortSignal.abort(new Error("deadline")),
      }),
    ).rejects.toThrow("deadline");
    expect(h.cloud.executions.size).toBe(1);
  });
});

describe("explainError", () => {
  test("reads the REST fallback's errors, which carry the raw body as their message", () => {
    const body = JSON.stringify({
      error: { code: 429, message: "Quota exceeded", status: "RESOURCE_EXHAUSTED" },
    });
    expect(explainError(Object.assign(new Error(body), { code: 429, status: 429 }))).toMatchObject({
      kind: "retry",
    });
    const html = Object.assign(new Error("<html>Service Unavailable</html>"), { status: 503, code: "503" });
    expect(explainError(html)).toMatchObject({ kind: "ambiguous", code: "UNAVAILABLE" });
  });

  test("honours Retry-After", () => {
    const response = { status: 429, headers: new Headers({ "retry-after": "7" }) };
    expect(explainError({ status: 429, response })).toMatchObject({ kind: "retry", retryAfterMs: 7000 });
  });

  test.each(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN"])("nothing was sent on %s", (code) => {
    expect(explainError(Object.assign(new Error("x"), { code }))).toMatchObject({
      kind: "retry",
      code: "NOT_REACHED",
    });
    const nested = new TypeError("fetch failed", { cause: Object.assign(new Error("x"), { code }) });
    expect(explainError(nested)).toMatchObject({ kind: "retry" });
  });

  test("says nothing about what it does not know", () => {
    for (const error of [
      undefined,
      null,
      "text",
      new Error("x"),
      Object.assign(new Error("x"), { code: "ECONNRESET" }),
    ]) {
      expect(explainError(error)).toBeUndefined();
    }
    expect(explainError({ code: 99 })).toBeUndefined();
  });
});

describe("without credentials", () => {
  test("a start is refused and the process lives on", async () => {
    const unhandled: unknown[] = [];
    const listener = (reason: unknown) => unhandled.push(reason);
    process.on("unhandledRejection", listener);
    // A key file that is not there fails like missing default credentials: before anything is sent.
    const adapter = googleWorkflows({
      project: "p",
      location: "l",
      workflow: "w",
      keyFilename: "/nonexistent/key.json",
    });
    await expect(
      adapter.start({ key: newKey(), input: {}, retry: false, signal: signal() }),
    ).rejects.toThrow();
    await new Promise((resolve) => setImmediate(resolve));
    process.off("unhandledRejection", listener);
    expect(unhandled).toEqual([]);
  });

  test("a key that was revoked is a refusal of the credentials, not of the request", () => {
    const response = {
      status: 400,
      data: { error: "invalid_grant", error_description: "Invalid JWT Signature." },
    };
    const error = Object.assign(new Error("invalid_grant"), { status: 400, response });
    expect(explainError(error)).toMatchObject({ kind: "rejected", code: "NO_CREDENTIALS" });
  });

  test("missing default credentials are a refusal", () => {
    const error = new Error("Could not load the default credentials. Browse to …");
    expect(explainError(error)).toMatchObject({ kind: "rejected", code: "NO_CREDENTIALS" });
  });
});
