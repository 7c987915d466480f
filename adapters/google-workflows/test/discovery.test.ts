import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { CloudFault } from "../emulator/src/cloud.js";
import { discoverWorkflows, parseDescription } from "../src/index.js";
import { bearer, type Harness, harness, PROJECT } from "./harness.js";

const SCHEMA = { type: "object", properties: { id: { type: "string" } }, required: ["id"] };
const fenced = (schema: unknown, lang = "json") =>
  `Ships an order.\n\n\`\`\`${lang}\n${JSON.stringify(schema)}\n\`\`\``;

describe("discoverWorkflows", () => {
  let h: Harness;
  beforeEach(async () => {
    h = await harness("REST");
  });
  afterEach(() => h.close());

  const discover = (location: string | string[], more = {}) =>
    discoverWorkflows({
      project: PROJECT,
      location,
      workflowsEndpoint: h.server.restEndpoint,
      insecure: true,
      auth: bearer("test-token"),
      ...more,
    });

  test("reads every page, with descriptions and schemas", async () => {
    h.cloud.deploy({ id: "ship", location: "us-central1", description: fenced(SCHEMA) });
    h.cloud.deploy({ id: "plain", location: "us-central1", description: "No schema" });
    h.cloud.deploy({ id: "broken", location: "us-central1", state: "UNAVAILABLE" });
    h.cloud.deploy({ id: "elsewhere", location: "europe-west1" });
    const { workflows, unreachable } = await discover("us-central1");
    expect(unreachable).toEqual([]);
    expect(workflows).toEqual([
      {
        name: "ship",
        project: PROJECT,
        location: "us-central1",
        workflow: "ship",
        description: "Ships an order.",
        inputSchema: SCHEMA,
        state: "ACTIVE",
        revision: "000003-b1c",
        labels: {},
      },
      expect.objectContaining({ name: "plain", description: "No schema" }),
      expect.objectContaining({ name: "broken", state: "UNAVAILABLE" }),
    ]);
    expect(workflows[1]).not.toHaveProperty("inputSchema");
    expect(h.cloud.count("listWorkflows")).toBe(2);
    expect(h.cloud.calls[0]?.authorization).toBe("Bearer test-token");
  });

  test("keeps names apart, and says what could not be reached", async () => {
    for (const location of ["us-central1", "europe-west1"]) h.cloud.deploy({ id: "ship", location });
    h.cloud.deploy({ id: "ship_us-central1", location: "us-central1" });
    h.cloud.unreachable.push("asia-east1");
    const { workflows, unreachable } = await discover("-");
    const names = workflows.map(({ name }) => name);
    expect(new Set(names).size).toBe(3);
    expect(names).toEqual(["ship_us-central1_2", "ship_europe-west1", "ship_us-central1"]);
    for (const name of names) expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
    expect(unreachable).toHaveLength(1);
  });

  test("a configured schema wins", async () => {
    h.cloud.deploy({ id: "ship", location: "us-central1", description: fenced(SCHEMA) });
    const inputSchema = { type: "object", properties: {} };
    const { workflows } = await discover(["us-central1"], { inputSchemas: { ship: inputSchema } });
    expect(workflows[0]?.inputSchema).toEqual(inputSchema);
  });

  test("a refusal is thrown, not taken for 'none'", async () => {
    h.cloud.inject("listWorkflows", { kind: "refuse", fault: new CloudFault("PERMISSION_DENIED", "no") });
    await expect(discover("us-central1")).rejects.toThrow();
  });
});

describe("parseDescription", () => {
  test.each(["json", ""])("takes a block fenced with %j", (lang) => {
    expect(parseDescription(fenced(SCHEMA, lang))).toEqual({
      description: "Ships an order.",
      inputSchema: SCHEMA,
    });
  });

  test("leaves blocks alone that are no object schema", () => {
    for (const text of [
      "```json\n[1]\n```",
      "```json\n{broken\n```",
      "```yaml\na: 1\n```",
      '```json\n{"example":1}\n```',
    ]) {
      expect(parseDescription(text)).toEqual({ description: text });
    }
  });

  test("finds the schema behind an example", () => {
    const text = `\`\`\`json\n{"example":1}\n\`\`\`\n${fenced(SCHEMA)}`;
    expect(parseDescription(text).inputSchema).toEqual(SCHEMA);
  });
});
