import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { CloudFault } from "../emulator/src/cloud.js";
import {
  type Harness,
  harness,
  LOCATION,
  newKey,
  PROJECT,
  readRequest,
  signal,
  TRANSPORTS,
} from "./harness.js";

describe.each(TRANSPORTS)("finding an interrupted start over %s", (transport) => {
  let h: Harness;
  beforeEach(async () => {
    h = await harness(transport);
    h.cloud.deploy({ id: "orders", location: LOCATION });
  });
  afterEach(() => h.close());

  const search = (
    key: string,
    startedAtMs: number,
    adapter = h.adapter(),
    lastStartedAtMs: number = startedAtMs,
  ) => {
    const isClaimed = async () => false;
    return adapter.find?.({ key, input: {}, startedAtMs, lastStartedAtMs, signal: signal(), isClaimed });
  };
  const longAgo = () => Date.now() - 3_600_000;

  test("finds the execution whose creation was not heard of, and never makes a second", async () => {
    h.cloud.inject("createExecution", { kind: "loseAnswer" });
    const key = newKey();
    await expect(h.adapter().start({ key, input: {}, retry: false, signal: signal() })).rejects.toThrow();
    const found = await search(key, Date.now());
    const [execution] = h.cloud.executions.values();
    expect(found?.ref).toBe(
      `projects/${PROJECT}/locations/${LOCATION}/workflows/orders/executions/${execution?.id}`,
    );
    expect(h.cloud.count("createExecution")).toBe(1);
  });

  test("looks through the pages until what is older than the start", async () => {
    const key = newKey();
    const target = h.cloud.create(LOCATION, "orders", { labels: { "taskferry-id": key } });
    for (let n = 0; n < 250; n++)
      h.cloud.create(LOCATION, "orders", { labels: { "taskferry-id": `other${n}` } });
    expect((await search(key, longAgo()))?.ref).toMatch(new RegExp(`${target.id}$`));
    expect(h.cloud.count("listExecutions")).toBe(3);

    const before = h.cloud.count("listExecutions");
    for (const one of h.cloud.executions.values()) one.startedMs = Date.now() - 24 * 3_600_000;
    expect(await search(newKey(), longAgo())).toBeUndefined();
    expect(h.cloud.count("listExecutions") - before).toBe(1);
  });

  test("finds a queued execution behind others: none of them has a start time to go by", async () => {
    h.cloud.slots = 0;
    const key = newKey();
    h.cloud.create(LOCATION, "orders", { labels: { "taskferry-id": key } });
    for (let n = 0; n < 150; n++) h.cloud.create(LOCATION, "orders", {});
    expect((await search(key, Date.now()))?.state?.status).toBe("submitted");
  });

  test("says 'not yet' while the list may lag, 'none' afterwards", async () => {
    h.cloud.listsNewExecutions = false;
    const key = newKey();
    const { id } = h.cloud.create(LOCATION, "orders", { labels: { "taskferry-id": key } });
    await expect(search(key, Date.now() - 119_000)).rejects.toMatchObject({
      verdict: { kind: "retry", code: "NOT_LISTED_YET" },
    });
    h.cloud.update(id, { listed: true });
    expect((await search(key, Date.now() - 119_000))?.ref).toMatch(new RegExp(`${id}$`));
    expect(await search(newKey(), Date.now() - 121_000)).toBeUndefined();
  });

  test("after a second attempt, the window counts from that one, and the search still reaches back to the first", async () => {
    const now = Date.now();
    await expect(search(newKey(), now - 300_000, h.adapter(), now - 119_000)).rejects.toMatchObject({
      verdict: { kind: "retry", code: "NOT_LISTED_YET" },
    });
    expect(await search(newKey(), now - 300_000, h.adapter(), now - 121_000)).toBeUndefined();
    const key = newKey();
    // Made by the first attempt, well before the second.
    h.cloud.create(LOCATION, "orders", {
      labels: { "taskferry-id": key },
      createdMs: now - 299_000,
      startedMs: now - 299_000,
    });
    expect((await search(key, now - 300_000, h.adapter(), now))?.ref).toBeDefined();
  });

  test("the window is an option", async () => {
    const adapter = h.adapter({ find: { appearsWithinMs: 1000 } });
    expect(await search(newKey(), Date.now() - 1001, adapter)).toBeUndefined();
  });

  test("gives up rather than guess when there is too much to look through", async () => {
    for (let n = 0; n < 201; n++) h.cloud.create(LOCATION, "orders", {});
    const adapter = h.adapter({ find: { maxPages: 2 } });
    await expect(search(newKey(), longAgo(), adapter)).rejects.toMatchObject({
      verdict: { kind: "ambiguous", code: "SEARCH_LIMIT" },
    });
  });

  test("a filter narrows the list on Google's side", async () => {
    const key = newKey();
    h.cloud.create(LOCATION, "orders", { labels: { "taskferry-id": key }, state: "FAILED" });
    const adapter = h.adapter({
      find: { filter: ({ label }) => (label === "taskferry-id" ? 'state="ACTIVE"' : "") },
    });
    expect(await search(key, longAgo(), adapter)).toBeUndefined();
    expect((await search(key, longAgo()))?.ref).toBeDefined();
  });

  test("a workflow that does not exist has no execution", async () => {
    expect(await search(newKey(), longAgo(), h.adapter({ workflow: "missing" }))).toBeUndefined();
  });

  test("a list that fails is no answer", async () => {
    const adapter = h.adapter();
    h.cloud.inject("listExecutions", { kind: "refuse", fault: new CloudFault("UNAVAILABLE", "down") });
    const error = await Promise.resolve(search(newKey(), longAgo(), adapter)).catch((e: unknown) => e);
    expect(adapter.explain?.(error)).toMatchObject({ kind: "ambiguous" });
  });

  test("a process killed right after the creation leaves an execution that the next one finds", async () => {
    h.cloud.inject("createExecution", { kind: "holdAnswer" });
    const key = newKey();
    const child = startInChild(h, transport, key);
    await h.cloud.until(() => h.cloud.executions.size === 1);
    child.kill("SIGKILL");
    await new Promise((resolve) => child.once("exit", resolve));
    const found = await search(key, Date.now());
    expect(found?.ref).toMatch(new RegExp(`${[...h.cloud.executions.keys()][0]}$`));
    expect((await h.adapter().read(found?.ref ?? "", readRequest())).status).toBe("working");
    expect(h.cloud.count("createExecution")).toBe(1);
  });
});

/** Another process that starts one run and never gets to say so. */
function startInChild(h: Harness, transport: string, key: string): ChildProcess {
  const options = {
    project: PROJECT,
    location: LOCATION,
    workflow: "orders",
    apiEndpoint: h.server.grpcEndpoint,
    restEndpoint: h.server.restEndpoint,
    fallback: transport === "REST",
    insecure: true,
  };
  const script = `
    import { googleWorkflows } from ${JSON.stringify(new URL("../dist/index.js", import.meta.url).href)};
    const adapter = googleWorkflows(${JSON.stringify(options)});
    await adapter.start({ key: ${JSON.stringify(key)}, input: {}, retry: false, signal: new AbortController().signal });
  `;
  return spawn(process.execPath, ["--input-type=module", "-e", script], {
    cwd: fileURLToPath(new URL("..", import.meta.url)),
    stdio: "inherit",
  });
}
