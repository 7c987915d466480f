import { createHmac } from "node:crypto";
import { createRequire } from "node:module";
import { describe, expect, it, vi } from "vitest";
import { githubActions, rerun, watchRun } from "../src/index.js";
import { refusal } from "./world.js";

interface Example {
  readonly name: string;
  readonly examples: readonly Record<string, unknown>[];
}

/** Deliveries as GitHub sent them, collected by Octokit. */
const EXAMPLES: readonly Example[] = createRequire(import.meta.url)("@octokit/webhooks-examples");
const SECRET = "It's a Secret to Everybody";
const options = { repositories: ["*/*"], workflow: "ci.yml", webhookSecret: SECRET };
const signal = new AbortController().signal;
let deliveries = 0;

function examples(event: string): readonly Record<string, unknown>[] {
  return EXAMPLES.find(({ name }) => name === event)?.examples ?? [];
}

function delivery(
  event: string,
  payload: unknown,
  more: { secret?: string; id?: string; text?: string } = {},
) {
  deliveries += 1;
  const text = more.text ?? JSON.stringify(payload);
  const signature = createHmac("sha256", more.secret ?? SECRET)
    .update(text)
    .digest("hex");
  return {
    headers: {
      "content-type": "application/json",
      "x-github-event": event,
      "x-github-delivery": more.id ?? `delivery-${deliveries}`,
      "x-hub-signature-256": `sha256=${signature}`,
    },
    body: new TextEncoder().encode(text),
    signal,
  };
}

describe("webhook deliveries", () => {
  const adapter = githubActions(options);
  const runEvents = ["workflow_run", "workflow_job", "deployment_review"].flatMap((event) =>
    examples(event).map((payload) => ({ event, payload, action: payload["action"] })),
  );

  it("are there to be tried", () => expect(runEvents.length).toBeGreaterThan(12));

  it.each(runEvents)("$event $action names its run, and the attempt of it", async ({ event, payload }) => {
    const { owner, name } = payload["repository"] as { owner: { login: string }; name: string };
    const inner = (payload["workflow_run"] ?? payload["workflow_job"]) as Record<string, number>;
    const ref = {
      owner: owner.login.toLowerCase(),
      repo: name.toLowerCase(),
      runId: String(inner["run_id"] ?? inner["id"]),
    };
    const attempt = inner["run_attempt"];
    const expected = attempt === undefined || attempt === 1 ? ref : { ...ref, attempt };
    expect(await adapter.events!(delivery(event, payload))).toEqual([expected]);
  });

  it("about anything else, and about other repositories, name none", async () => {
    for (const { name, examples: payloads } of EXAMPLES) {
      if (runEvents.some(({ event }) => event === name)) continue;
      expect(await adapter.events!(delivery(name, payloads[0]))).toEqual([]);
    }
    const one = githubActions({ ...options, repositories: ["octo/hello"] });
    expect(await one.events!(delivery("workflow_run", examples("workflow_run")[0]))).toEqual([]);
    expect(await adapter.events!(delivery("workflow_run", { action: "completed" }))).toEqual([]);
    expect(await adapter.events!(delivery("constructor", {}))).toEqual([]);
  });

  it("keep ids above 2^53", async () => {
    const text =
      '{"repository":{"name":"Hello","owner":{"login":"Octo"}},"workflow_run":{"id":9007199254740993,"run_attempt":2}}';
    expect(await adapter.events!(delivery("workflow_run", undefined, { text }))).toEqual([
      { owner: "octo", repo: "hello", runId: "9007199254740993", attempt: 2 },
    ]);
  });

  it("may come as a form", async () => {
    const payload = JSON.stringify(examples("workflow_run")[1]);
    const request = delivery("workflow_run", undefined, {
      text: new URLSearchParams({ payload }).toString(),
    });
    request.headers["content-type"] = "application/x-www-form-urlencoded";
    expect(await adapter.events!(request)).toHaveLength(1);
  });

  it("count once, also when they are sent again", async () => {
    const again = () => delivery("workflow_run", examples("workflow_run")[1], { id: "the-same" });
    expect(await adapter.events!(again())).toHaveLength(1);
    expect(await adapter.events!(again())).toEqual([]);
  });

  it("that are not signed, signed with another secret, or changed are refused without a word on stderr", async () => {
    const noise = [vi.spyOn(console, "error"), vi.spyOn(console, "warn"), vi.spyOn(process.stderr, "write")];
    const payload = examples("workflow_run")[1];
    const good = delivery("workflow_run", payload, { id: "forged" });
    const changed = { ...good, body: new TextEncoder().encode(`${JSON.stringify(payload)} `) };
    const { "x-hub-signature-256": signature, ...unsigned } = good.headers;
    for (const request of [
      delivery("workflow_run", payload, { secret: "guessed" }),
      changed,
      { ...good, headers: unsigned },
      { ...good, headers: { ...good.headers, "x-hub-signature-256": signature.slice(0, 30) } },
      { ...good, headers: { ...good.headers, "x-hub-signature-256": signature.replace("sha256", "sha1") } },
      { ...good, body: new Uint8Array() },
      { ...good, body: new Uint8Array([0xff, 0xfe]) },
    ]) {
      expect(await refusal(adapter, adapter.events!(request))).toMatchObject({
        kind: "rejected",
        code: "BadSignature",
      });
    }
    for (const spy of noise) {
      expect(spy).not.toHaveBeenCalled();
      spy.mockRestore();
    }
    // A forged delivery does not use up the id of the real one.
    expect(await adapter.events!(good)).toHaveLength(1);
  });

  it("are accepted with either secret during a rotation", async () => {
    const rotating = githubActions({ ...options, webhookSecret: ["new", "old"] });
    for (const secret of ["new", "old"]) {
      const request = delivery("workflow_run", examples("workflow_run")[1], { secret });
      expect(await rotating.events!(request)).toHaveLength(1);
    }
  });

  it("that are signed but no JSON are refused", async () => {
    const broken = adapter.events!(delivery("workflow_run", undefined, { text: "{" }));
    expect(await refusal(adapter, broken)).toMatchObject({ kind: "rejected", code: "InvalidPayload" });
  });

  it("are a capability of those who have a secret", () => {
    expect(githubActions({ ...options, webhookSecret: [] }).events).toBeUndefined();
    expect(watchRun({ repositories: ["*/*"] }).events).toBeUndefined();
    expect(watchRun({ repositories: ["*/*"], webhookSecret: SECRET }).events).toBeDefined();
    expect(rerun({ repositories: ["*/*"], webhookSecret: SECRET }).events).toBeDefined();
  });
});
