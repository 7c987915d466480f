/** Against the protocol server: pages, encrypted and vanishing machines. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { ACCOUNT, ProtocolServer, refuse } from "../emulator/src/protocol-server.js";
import { discoverStateMachines } from "../src/index.js";
import { Run } from "./support.js";

let server: ProtocolServer;
beforeEach(async () => {
  server = await ProtocolServer.open();
});
afterEach(() => server.close());

const comment = (text: string) => ({ definition: JSON.stringify({ Comment: text }) });

it("goes through all pages", async () => {
  server.pageSize = 2;
  for (const name of ["a1", "b1", "a2", "a3", "b2"]) server.createMachine(name);
  const found = await discoverStateMachines({ client: server.client(), prefix: "a" });
  expect(found.map(({ name }) => name)).toEqual(["a1", "a2", "a3"]);
  expect(server.countOf("ListStateMachines")).toBe(3);
});

it("marks Express machines and makes their adapters so", async () => {
  server.createMachine("quick", { type: "EXPRESS", run: () => ({ output: { ok: true } }) });
  const [quick] = await discoverStateMachines({ client: server.client(), prefix: "quick" });
  expect(quick).toMatchObject({ type: "EXPRESS", stateMachineArn: `${ACCOUNT}:stateMachine:quick` });
  const { started } = await Run.start(quick!.adapter({ engine: "quick-engine" }), {});
  expect(started.state).toMatchObject({ output: { value: { ok: true } } });
});

it("takes a machine only by its tag, with the value if one is named", async () => {
  server.createMachine("open", { tags: { taskferry: "expose" } });
  server.createMachine("other", { tags: { taskferry: "hide" } });
  server.createMachine("untagged");
  const client = server.client();
  const names = async (tag: string | { key: string; value: string }) =>
    (await discoverStateMachines({ client, tag })).map(({ name }) => name);
  expect(await names("taskferry")).toEqual(["open", "other"]);
  expect(await names({ key: "taskferry", value: "expose" })).toEqual(["open"]);
});

it("gives names that tools can have, apart even where a host folds them, whatever the order", async () => {
  const machines = ["x-a-b", "x-a_b", "x-A.b", "x-c d?", "x-e"];
  const namesIn = async (order: readonly string[]) => {
    server.machines.clear();
    for (const name of order) server.createMachine(name);
    const found = await discoverStateMachines({ client: server.client(), prefix: "x-" });
    const pairs = found.map(
      ({ stateMachineArn, name }) => [stateMachineArn.split(":").at(-1) ?? "", name] as const,
    );
    return Object.fromEntries(pairs);
  };
  const names = await namesIn(machines);
  const folded = Object.values(names).map((name) => name.toLowerCase().replaceAll("-", "_"));
  expect(new Set(folded).size).toBe(machines.length);
  for (const name of Object.values(names)) expect(name).toMatch(/^[\w-]{1,128}$/);
  expect(names).toMatchObject({ "x-c d?": "x-c_d_", "x-e": "x-e" });
  expect(await namesIn(machines.toReversed())).toEqual(names);
});

it.each([
  [
    "a schema in its fence",
    'Sends it.\n```json\n{"type":"object","properties":{}}\n```',
    "Sends it.",
    { type: "object", properties: {} },
  ],
  ["a fence that is no schema", "See ```x```", "See ```x```", undefined],
  ["a schema of something else", '```{"type":"string"}```', '```{"type":"string"}```', undefined],
  ["no comment", "", undefined, undefined],
])("reads %s", async (_what, text, description, inputSchema) => {
  server.createMachine("m", comment(text));
  const [found] = await discoverStateMachines({ client: server.client(), prefix: "m" });
  expect([found?.description, found?.inputSchema]).toEqual([description, inputSchema]);
});

it("leaves out what is being deleted or has gone, and reads what is encrypted without its definition", async () => {
  server.createMachine("m1", { status: "DELETING" });
  server.createMachine("m2");
  server.createMachine("m3", comment("Secret"));
  server.next(
    "DescribeStateMachine",
    (operate) => operate(),
    refuse("StateMachineDoesNotExist"),
    refuse("KmsAccessDeniedException"),
  );
  const found = await discoverStateMachines({ client: server.client(), prefix: "m" });
  expect(found.map(({ name }) => name)).toEqual(["m3"]);
  expect(server.calls.at(-1)?.input).toMatchObject({ includedData: "METADATA_ONLY" });
});

it("does not expose a whole account by mistake", async () => {
  await expect(discoverStateMachines({ client: server.client() })).rejects.toMatchObject({
    code: "configuration",
  });
});
