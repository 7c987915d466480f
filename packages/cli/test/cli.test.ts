/** The command, as operators run it: real processes, real clients. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { describe, expect, onTestFinished, test } from "vitest";

const MAIN = fileURLToPath(new URL("../dist/main.js", import.meta.url));

const COUNT = `
workflows:
  - name: count_lines
    description: Counts the lines of a file
    engine: process
    with:
      command: ["wc", "-l", "--", "{{file}}"]
      stateDir: \${RUNS}
    input:
      type: object
      properties:
        file: { type: string }
      required: [file]
    pollMs: 50
`;

async function folderWith(
  yaml: string,
): Promise<{ folder: string; file: string; env: Record<string, string> }> {
  const folder = await mkdtemp(join(tmpdir(), "taskferry-cli-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  const file = join(folder, "taskferry.yaml");
  await writeFile(file, yaml);
  return {
    folder,
    file,
    env: { ...(process.env as Record<string, string>), RUNS: join(folder, "runs"), XDG_STATE_HOME: folder },
  };
}

async function run(args: readonly string[], env: NodeJS.ProcessEnv) {
  const child = spawn(process.execPath, [MAIN, ...args], { env, stdio: ["ignore", "pipe", "pipe"] });
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (chunk) => (stdout += chunk));
  child.stderr.on("data", (chunk) => (stderr += chunk));
  const [code] = await once(child, "close");
  return { code, stdout, stderr };
}

/** Starts an HTTP server and waits until it serves. */
async function serving(file: string, env: NodeJS.ProcessEnv): Promise<URL> {
  const child = spawn(process.execPath, [MAIN, "serve", file], { env, stdio: ["ignore", "ignore", "pipe"] });
  onTestFinished(async () => {
    const gone = once(child, "exit");
    child.kill("SIGTERM");
    expect((await gone)[0]).toBe(0);
  });
  let said = "";
  for await (const chunk of child.stderr) {
    said += chunk;
    const url = /Serving MCP at (\S+)/.exec(said)?.[1];
    if (url !== undefined) return new URL(url);
  }
  throw new Error(said);
}

describe("serve", () => {
  test("stdio: a host calls a local command", async () => {
    const { file, env } = await folderWith(COUNT);
    const client = new Client({ name: "host", version: "0" });
    await client.connect(
      new StdioClientTransport({
        command: process.execPath,
        args: [MAIN, "serve", file],
        env,
        stderr: "ignore",
      }),
    );
    onTestFinished(() => client.close());
    const { tools } = await client.listTools();
    expect(tools.map((tool) => tool.name)).toContain("count_lines");
    const result = await client.callTool({ name: "count_lines", arguments: { file } });
    expect(JSON.stringify(result.content)).toContain(file);
  });

  test("HTTP with tokens: one owner does not see another's tasks, and strangers nothing", async () => {
    const { file, env } = await folderWith(`
server:
  name: tokens
  http:
    port: 0
    auth:
      tokens:
        - { token: "\${ANN}", subject: ann }
        - { token: "\${BOB}", subject: bob }
store: { sqlite: ./tasks.db }
${COUNT}`);
    const tokens = { ANN: "ann-0123456789abcdef", BOB: "bob-0123456789abcdef" };
    const url = await serving(file, { ...env, ...tokens });
    expect((await fetch(url, { method: "POST" })).status).toBe(401);
    const connect = async (token: string) => {
      const client = new Client({ name: "client", version: "0" });
      const headers = { authorization: `Bearer ${token}` };
      await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
      onTestFinished(() => client.close());
      return client;
    };
    const [ann, bob] = await Promise.all([connect(tokens.ANN), connect(tokens.BOB)]);
    await ann.callTool({ name: "count_lines", arguments: { file } });
    const seen = async (client: Client) =>
      ((await client.callTool({ name: "task_list", arguments: {} })).structuredContent as { tasks: object[] })
        .tasks.length;
    expect(await seen(ann)).toBe(1);
    expect(await seen(bob)).toBe(0);
  });

  test("an adapter of one's own, beside the file", async () => {
    const { folder, file, env } = await folderWith(`
server: { http: { port: 0 } }
store: { sqlite: ":memory:" }
workflows:
  - name: echo
    engine: ./echo.mjs
    with: { word: "\${WORD:-hello} $\${WORD}" }
`);
    await writeFile(
      join(folder, "echo.mjs"),
      `export const echo = ({ word }) => ({
        engine: "echo",
        start: async () => ({ ref: 1 }),
        read: async () => ({ native: "DONE", status: "completed", output: { text: word } }),
      });`,
    );
    const client = new Client({ name: "client", version: "0" });
    await client.connect(new StreamableHTTPClientTransport(await serving(file, env)));
    onTestFinished(() => client.close());
    expect((await client.callTool({ name: "echo", arguments: {} })).content).toEqual([
      // biome-ignore lint/suspicious/noTemplateCurlyInString: `$${` stands for these characters
      { type: "text", text: "hello ${WORD}" },
    ]);
  });
});

describe("check", () => {
  test("names what the file offers", async () => {
    const { file, env } = await folderWith(COUNT);
    expect(await run(["check", file], env)).toEqual({
      code: 0,
      stdout: "count_lines: a tool on process\n",
      stderr: "",
    });
  });

  const wrong: readonly (readonly [string, string, RegExp])[] = [
    ["a file that is not YAML", "workflows: [", /cannot be used/],
    ["no workflows", "workflows: []", /workflows \(line 1\)/],
    [
      "an unknown key, with its line",
      "limits:\n  speed: 3\nworkflows: [{ name: a, engine: process }]",
      /limits.*speed/s,
    ],
    ["an unset variable", COUNT, /RUNS is not set/],
    [
      "an engine that is not installed",
      "workflows:\n  - { name: a, engine: '@taskferry/no-such' }",
      /npm install @taskferry\/no-such/,
    ],
    [
      "a short name mistyped",
      "workflows:\n  - { name: a, engine: proces }",
      /did you mean one of process, step-functions/,
    ],
    [
      "two workflows of one name, with the line",
      "workflows:\n  - { name: a, engine: process }\n  - { name: a, engine: process }",
      /workflows\.1\.name \(line 3\): "a" is taken/,
    ],
    [
      "a command that is a string",
      "workflows:\n  - { name: a, engine: process, with: { command: 'ls -l' } }",
      /list of strings, the program first/,
    ],
    [
      "a module that is not there",
      "workflows:\n  - { name: a, engine: ./nothing.mjs }",
      /nothing\.mjs" cannot be loaded/,
    ],
    [
      "options that the adapter refuses",
      "workflows:\n  - { name: a, engine: process, with: { command: [] } }",
      /Workflow "a"/,
    ],
    [
      "an option that the adapter does not have",
      "workflows:\n  - { name: a, engine: process, with: { command: ['true'], timeoutMs: 5 } }",
      /Workflow "a": localProcess has no option "timeoutMs"; its options are command, cwd/,
    ],
    [
      "a name that cannot be a tool's",
      "workflows:\n  - { name: 'a b', engine: process, with: { command: ['true'] } }",
      /Workflow name "a b"/,
    ],
    [
      "a token that is no secret",
      "server: { http: { auth: { tokens: [{ token: short, subject: a }] } } }\nworkflows: [{ name: a, engine: process }]",
      /token/,
    ],
  ];
  test.each(wrong)("%s is told in words", async (_what, yaml, words) => {
    const { file, env } = await folderWith(yaml);
    const { RUNS: _runs, ...without } = env;
    const { code, stderr } = await run(["check", file], without);
    expect(code).toBe(1);
    expect(stderr).toMatch(words);
    expect(stderr).not.toMatch(/ {4}at /);
    expect(stderr).not.toContain("short");
  });

  test("a file that is not there", async () => {
    const { code, stderr } = await run(["serve", "/nowhere/taskferry.yaml"], process.env);
    expect(code).toBe(1);
    expect(stderr).toContain("/nowhere/taskferry.yaml cannot be read");
  });

  test("a store in a place that cannot be made", async () => {
    const { folder, file, env } = await folderWith(`store: { sqlite: ./taken/tasks.db }\n${COUNT}`);
    await writeFile(join(folder, "taken"), "a file, not a folder");
    const { code, stderr } = await run(["serve", file], env);
    expect(code).toBe(1);
    expect(stderr).toMatch(/taken for the task store cannot be made \((ENOTDIR|EEXIST)\)/);
  });

  test("strangers beyond loopback are not let in by accident", async () => {
    const { file, env } = await folderWith(`server: { http: { host: 0.0.0.0, port: 0 } }\n${COUNT}`);
    const { code, stderr } = await run(["serve", file], env);
    expect(code).toBe(1);
    expect(stderr).toContain("allowAnonymous");
  });
});
