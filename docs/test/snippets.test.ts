import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { expect, it, onTestFinished } from "vitest";

const snippet = (name: string) => fileURLToPath(new URL(`../dist/${name}.js`, import.meta.url));

async function connect(name: string): Promise<{ client: Client; folder: string }> {
  const folder = await mkdtemp(join(tmpdir(), "taskferry-docs-"));
  const client = new Client({ name: "reader", version: "1.0.0" });
  onTestFinished(async () => {
    await client.close();
    await rm(folder, { recursive: true, force: true });
  });
  const env = { PATH: process.env["PATH"] ?? "", XDG_STATE_HOME: folder };
  await client.connect(
    new StdioClientTransport({ command: process.execPath, args: [snippet(name)], cwd: folder, env }),
  );
  return { client, folder };
}

it("the server of the README runs a command for a client", async () => {
  const { client, folder } = await connect("server");
  const file = join(folder, "three.txt");
  await writeFile(file, "one\ntwo\nthree\n");
  const answer = await client.callTool({ name: "count_lines", arguments: { file } });
  expect(JSON.stringify(answer.content)).toMatch(/\b3 /);
  expect(answer.isError ?? false).toBe(false);
}, 30_000);

it("attach puts workflows beside ordinary tools", async () => {
  const { client } = await connect("attach");
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name)).toEqual(
    expect.arrayContaining(["ping", "nightly_report", "task_status"]),
  );
  expect(await client.callTool({ name: "ping", arguments: {} })).toMatchObject({
    content: [{ type: "text", text: "pong" }],
  });
}, 30_000);
