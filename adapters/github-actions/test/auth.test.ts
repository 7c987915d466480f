import { generateKeyPairSync } from "node:crypto";
import { Octokit } from "@octokit/rest";
import { describe, expect, it, vi } from "vitest";
import { webOrigin } from "../src/client.js";
import { githubActions } from "../src/index.js";
import { CI, CORRELATED, hello, refusal, Task } from "./world.js";

const privateKey = generateKeyPairSync("rsa", {
  modulusLength: 2048,
  publicKeyEncoding: { type: "spki", format: "pem" },
  privateKeyEncoding: { type: "pkcs8", format: "pem" },
}).privateKey;

describe("a GitHub App", () => {
  it("finds its installation for the repository once, and calls with its token", async () => {
    const { server, options } = await hello();
    const instance = githubActions({ ...options, auth: { appId: 7, privateKey } });
    const task = await new Task().start(instance);
    await task.read(instance);
    expect(server.calls(/\/installation$/)).toHaveLength(1);
    expect(server.calls(/access_tokens$/)).toHaveLength(1);
    expect(server.calls(/\/installation$/)[0]?.headers.authorization).toMatch(/^bearer eyJ/);
    expect(server.dispatches[0]?.headers.authorization).toBe("token ghs_installation");
  });

  it("asks for no installation when it is given", async () => {
    const { server, options } = await hello();
    const instance = githubActions({ ...options, auth: { appId: 7, privateKey, installationId: 42 } });
    await new Task().start(instance);
    expect(server.calls(/\/installation$/)).toHaveLength(0);
    expect(server.dispatches[0]?.headers.authorization).toBe("token ghs_installation");
  });

  it("shares a client between an owner's repositories, and asks again where it was not installed", async () => {
    const { server, state, options } = await hello();
    state.repository("octo/other", { files: { [CI]: CORRELATED } });
    const { owner: _owner, repo: _repo, ...rest } = options;
    const instance = githubActions({ ...rest, auth: { appId: 7, privateKey }, repositories: ["octo/*"] });
    server.fault({ on: /installation$/, does: { status: 404, body: { message: "Not Found" } } });
    const start = (name: string) => new Task().start(instance, { repository: `octo/${name}` });
    expect(await refusal(instance, start("hello"))).toMatchObject({
      kind: "rejected",
      code: "AppNotInstalled",
    });
    await Promise.all([start("hello"), start("other"), start("hello")]);
    expect(server.calls(/\/installation$/)).toHaveLength(3);
    expect(server.calls(/access_tokens$/)).toHaveLength(1);
  });
});

it("each installation of an App has a rate limit of its own", async () => {
  const { server, state, options } = await hello();
  state.repository("acme/other", { files: { [CI]: CORRELATED } });
  const { owner: _owner, repo: _repo, ...rest } = options;
  const instance = githubActions({ ...rest, auth: { appId: 7, privateKey }, repositories: ["*/*"] });
  server.fault({ on: /octo\/hello\/.*dispatches/, does: { status: 429, body: { message: "slow down" } } });
  const start = (repository: string) => new Task().start(instance, { repository });
  expect(await refusal(instance, start("octo/hello"))).toMatchObject({ code: "RateLimited" });
  expect(await refusal(instance, start("octo/hello"))).toMatchObject({ code: "RateLimited" });
  await start("acme/other");
  expect(server.dispatches.map(({ status }) => status)).toEqual([429, 200]);
});

describe("other identities", () => {
  it("none at all", async () => {
    const { server, options } = await hello();
    const { auth: _, ...anonymous } = options;
    await new Task().start(githubActions(anonymous));
    expect(server.dispatches[0]?.headers.authorization).toBeUndefined();
  });

  it("the user's own Octokit, as it is", async () => {
    const { server, options } = await hello();
    const octokit = new Octokit({ baseUrl: server.url, auth: "own", userAgent: "own-agent" });
    const { auth: _auth, baseUrl: _baseUrl, ...rest } = options;
    await new Task().start(githubActions({ ...rest, octokit }));
    expect(server.dispatches[0]?.headers).toMatchObject({ authorization: "token own" });
    expect(server.dispatches[0]?.headers["user-agent"]).toContain("own-agent");
  });

  it("nothing is printed, whatever is refused", async () => {
    const noise = (["error", "warn", "info", "debug", "log"] as const).map((name) => vi.spyOn(console, name));
    const { server, adapter } = await hello();
    const instance = adapter();
    const task = await new Task().start(instance);
    await task.read(instance);
    await task.read(instance);
    server.fault({ on: /runs/, does: { status: 500, body: { message: "no" } } });
    await refusal(instance, task.read(instance));
    for (const spy of noise) {
      expect(spy).not.toHaveBeenCalled();
      spy.mockRestore();
    }
  });
});

describe("GitHub's own site beside its API", () => {
  it.each([
    [undefined, "https://github.com"],
    ["https://api.github.com", "https://github.com"],
    ["https://git.example.com/api/v3", "https://git.example.com"],
    ["https://api.acme.ghe.com", "https://acme.ghe.com"],
    ["http://127.0.0.1:3000", "http://127.0.0.1:3000"],
  ])("%s → %s", (baseUrl, origin) => expect(webOrigin(baseUrl)).toBe(origin));

  it("is where an operator can look", async () => {
    const { server, adapter } = await hello();
    expect(adapter().consoleUrl).toBe(`${server.url}/octo/hello/actions/workflows/ci.yml`);
  });
});
