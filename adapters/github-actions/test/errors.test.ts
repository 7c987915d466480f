import { EngineError } from "@taskferry/core";
import { describe, expect, it } from "vitest";
import { ProtocolServer } from "../emulator/src/protocol-server.js";
import { explain } from "../src/errors.js";
import { githubActions } from "../src/index.js";
import { hello, refusal, Task, TOKEN } from "./world.js";

const REFUSED = { body: { message: "no", documentation_url: "https://docs.github.com" } };

describe("what an error means", () => {
  it.each([
    [401, "rejected", "BadCredentials"],
    [403, "rejected", "Forbidden"],
    [404, "rejected", "WorkflowNotFound"],
    [409, "rejected", "Conflict"],
    [410, "gone", "Expired"],
    [422, "rejected", "Unprocessable"],
    [451, "rejected", "HTTP451"],
    [500, "ambiguous", "HTTP500"],
    [503, "ambiguous", "HTTP503"],
  ])("%i on a dispatch: %s, %s", async (status, kind, code) => {
    const { server, adapter } = await hello();
    server.fault({ on: /dispatches/, does: { status, ...REFUSED }, times: 2 });
    expect(await refusal(adapter(), new Task().start(adapter()))).toMatchObject({ kind, code });
  });

  it.each([
    [401, "rejected", "BadCredentials"],
    [404, "gone", "NotFound"],
    [410, "gone", "Expired"],
    [500, "retry", "HTTP500"],
    [502, "retry", "HTTP502"],
  ])("%i on a read: %s, %s", async (status, kind, code) => {
    const { server, adapter } = await hello();
    const instance = adapter();
    const task = await new Task().start(instance);
    server.fault({ on: /actions\/runs\/\d+$/, does: { status, ...REFUSED } });
    expect(await refusal(instance, task.read(instance))).toMatchObject({ kind, code });
  });

  it("a broken connection is ambiguous for a write and worth another try for a read", async () => {
    const { server, adapter } = await hello();
    const instance = adapter();
    const task = await new Task().start(instance);
    server.fault({ on: /actions\/runs\/\d+$/, does: "cut-before" });
    expect(await refusal(instance, task.read(instance))).toMatchObject({ kind: "retry", code: "NoAnswer" });
  });

  it("a server that nobody reaches got nothing", async () => {
    const { options } = await hello();
    const closed = await ProtocolServer.start();
    await closed.close();
    const instance = githubActions({ ...options, baseUrl: closed.url });
    expect(await refusal(instance, new Task().start(instance))).toMatchObject({
      kind: "retry",
      code: "Unreachable",
    });
  });

  it("an abort while the dispatch is on its way is ambiguous", async () => {
    const { server, adapter } = await hello();
    const instance = adapter();
    server.fault({ on: /dispatches/, does: "hang" });
    const abort = new AbortController();
    const start = instance.start({ key: new Task().key, input: {}, retry: false, signal: abort.signal });
    await expect.poll(() => server.dispatches.length).toBe(1);
    abort.abort();
    expect((await refusal(instance, start)).kind).toBe("ambiguous");
  });

  it("passes on a verdict that an error already has, and says nothing of strangers", () => {
    const error = new EngineError({ kind: "gone", message: "x" });
    expect(explain(error)).toBe(error.verdict);
    expect(explain(new Error("x"))).toBeUndefined();
    expect(explain("x")).toBeUndefined();
  });

  it("never repeats a token, an input or a body", async () => {
    const { server, adapter } = await hello();
    for (const status of [400, 401, 403, 404, 409, 410, 422, 429, 500]) {
      const does = { status, body: { message: `Provided value 's3cret' for input 'x' not in the list` } };
      server.fault({ on: /dispatches/, does, times: 2 });
      const { message, error } = await refusal(adapter(), new Task().start(adapter(), { suite: "unit" }));
      expect(message).not.toContain("s3cret");
      expect(JSON.stringify(error)).not.toContain(TOKEN);
    }
  });
});
