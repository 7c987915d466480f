/** Hostile clients: nonsense for every method, streams that block and break, and memory that is flat afterwards. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import fc from "fast-check";

// biome-ignore lint/suspicious/noExplicitAny: whatever a stranger sends
type Anything = any;

/** What the heap may have grown by, in bytes: counts are kept for a minute. */
const SLACK = 8 * 1024 * 1024;

const METHODS = [
  "tools/call",
  "tools/list",
  "tasks/get",
  "tasks/result",
  "tasks/list",
  "tasks/cancel",
  "tasks/delete",
  "tasks/update",
  "subscriptions/listen",
  "resources/read",
  "prompts/get",
  "notifications/cancelled",
];

const ENVELOPE = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "chaos", version: "0" },
  "io.modelcontextprotocol/clientCapabilities": { extensions: { "io.modelcontextprotocol/tasks": {} } },
};

/** Params that are nonsense, or nearly right. */
const params: fc.Arbitrary<Anything> = fc.oneof(
  fc.jsonValue(),
  fc.record(
    {
      name: fc.oneof(fc.constantFrom("flow", "task_status", "task_answer"), fc.jsonValue()),
      arguments: fc.jsonValue(),
      task: fc.jsonValue(),
      taskId: fc.oneof(fc.string({ unit: "binary", maxLength: 300 }), fc.jsonValue()),
      cursor: fc.jsonValue(),
      inputResponses: fc.jsonValue(),
      notifications: fc.oneof(fc.record({ taskIds: fc.jsonValue() }), fc.jsonValue()),
      uri: fc.jsonValue(),
      _meta: fc.oneof(
        fc.record({ "modelcontextprotocol.io/task": fc.jsonValue() }),
        fc.record({
          "modelcontextprotocol.io/task": fc.record({ taskId: fc.string(), keepAlive: fc.jsonValue() }),
        }),
        fc.record({ "modelcontextprotocol.io/related-task": fc.jsonValue() }),
        fc.record({ "taskferry.dev/idempotency-key": fc.jsonValue() }),
        fc.jsonValue(),
      ),
    },
    { requiredKeys: [] },
  ),
);

export async function hostileInput(long: boolean): Promise<boolean> {
  const server = await startServer();
  const problems: string[] = [];
  let requests = 0;
  const abuse = async (nonsense: number, rounds: number) => {
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...METHODS), params, fc.boolean(), async (method, given, modern) => {
        requests += 1;
        const problem = await sendNonsense(server.url, method, given, modern);
        if (problem !== undefined) throw new Error(problem);
      }),
      { numRuns: nonsense },
    );
    for (let round = 0; round < rounds; round++) await blockAndBreak(server.url, 300);
  };
  try {
    // Compiled code and caches are there once, whatever comes.
    await abuse(500, 1);
    const before = await settledMemory(server, 0);
    await abuse(long ? 20_000 : 1_500, long ? 10 : 3);
    // What a server holds after strangers have gone is what it held before.
    const after = await settledMemory(server, before + SLACK);
    if (after > before + SLACK) problems.push(`the heap grew from ${mib(before)} to ${mib(after)} MiB`);
    const alive = await fetch(new URL("/ready", server.url));
    if (alive.status !== 200) problems.push("the server is not ready any more");
    console.log(
      `hostile input: ${requests} requests of nonsense, blocked streams broken at every point, heap ${mib(before)} → ${mib(after)} MiB`,
    );
  } catch (error) {
    problems.push((error as Error).message);
  } finally {
    await server.stop();
  }
  for (const problem of problems) console.log(`WRONG hostile input: ${problem}`);
  return problems.length === 0;
}

/** @returns what is wrong with the answer */
async function sendNonsense(
  url: string,
  method: string,
  given: Anything,
  modern: boolean,
): Promise<string | undefined> {
  const isObject = typeof given === "object" && given !== null && !Array.isArray(given);
  const wrapped =
    modern && isObject
      ? { ...given, _meta: { ...(isRecord(given._meta) ? given._meta : {}), ...ENVELOPE } }
      : given;
  const isNotification = method.startsWith("notifications/");
  const name = isObject ? (given.name ?? given.taskId ?? given.uri) : undefined;
  const response = await fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...(modern && { "mcp-protocol-version": "2026-07-28", "mcp-method": method }),
      ...(modern && typeof name === "string" && /^[\x21-\x7e]+$/.test(name) && { "mcp-name": name }),
    },
    body: JSON.stringify({ jsonrpc: "2.0", ...(!isNotification && { id: 1 }), method, params: wrapped }),
    signal: AbortSignal.timeout(15_000),
  });
  if (response.status >= 500)
    return `${method} ${JSON.stringify(wrapped)} is answered with ${response.status}`;
  const reader = response.body?.getReader();
  // The first piece is enough: a listen or a draft's call stays open.
  const { value } = (await reader?.read()) ?? {};
  void reader?.cancel().catch(() => {});
  const text = new TextDecoder().decode(value);
  if (/"code":-32603/.test(text))
    return `${method} ${JSON.stringify(wrapped)} is an internal error: ${text.slice(0, 300)}`;
  return undefined;
}

/** Opens streams that block, on a task that does not end, and breaks them off. */
async function blockAndBreak(url: string, count: number): Promise<void> {
  const post = (method: string, body: object, headers: Record<string, string> = {}) =>
    fetch(url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        ...headers,
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: body }),
    });
  const text = await (await post("tools/call", { name: "flow", arguments: {}, task: {} })).text();
  const taskId = /"taskId":"([^"]+)"/.exec(text)?.[1] ?? "";
  const { hostname, port, pathname } = new URL(url);
  const bodies = [
    { headers: "", body: { method: "tasks/result", params: { taskId } } },
    {
      headers: "mcp-protocol-version: 2026-07-28\r\nmcp-method: subscriptions/listen\r\n",
      body: {
        method: "subscriptions/listen",
        params: { notifications: { taskIds: [taskId] }, _meta: ENVELOPE },
      },
    },
    { headers: "", body: { method: "tools/call", params: { name: "flow", arguments: {} } } },
  ];
  await Promise.all(
    Array.from({ length: count }, async (_, i) => {
      const { headers, body } = bodies[i % bodies.length] as (typeof bodies)[number];
      const payload = JSON.stringify({ jsonrpc: "2.0", id: i, ...body });
      const request =
        `POST ${pathname} HTTP/1.1\r\nhost: ${hostname}:${port}\r\ncontent-type: application/json\r\n` +
        `accept: application/json, text/event-stream\r\n${headers}content-length: ${Buffer.byteLength(payload)}\r\n\r\n${payload}`;
      // A third breaks off in the middle of its own request, the others while the answer is due.
      const sent = i % 3 === 0 ? request.slice(0, Math.floor((request.length * (i % 97)) / 97)) : request;
      const socket = connect(Number(port), hostname);
      socket.on("error", () => {});
      socket.write(sent);
      if (i % 3 !== 0)
        await Promise.race([
          once(socket, "data"),
          once(socket, "close"),
          new Promise((r) => setTimeout(r, 300)),
        ]);
      socket.destroy();
    }),
  );
  await post("tasks/cancel", { taskId }).then((response) => response.text());
}

interface Server {
  readonly url: string;
  /** Its heap after a garbage collection, in bytes. */
  memory(): Promise<number>;
  stop(): Promise<void>;
}

async function startServer(): Promise<Server> {
  const script = fileURLToPath(new URL("./hostile-server.js", import.meta.url));
  const child: ChildProcess = spawn(process.execPath, ["--expose-gc", script], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]();
  const url = (await lines.next()).value as string;
  return {
    url,
    async memory() {
      child.stdin?.write("\n");
      return Number((await lines.next()).value);
    },
    async stop() {
      const gone = once(child, "exit");
      child.kill("SIGKILL");
      await gone;
    },
  };
}

/** The server's heap once it has let go of what has ended: when it is below `enough`, or no longer shrinks. */
async function settledMemory(server: Server, enough: number): Promise<number> {
  let memory = await server.memory();
  for (let unchanged = 0; memory > enough && unchanged < 12; ) {
    await new Promise((resolve) => setTimeout(resolve, 250));
    const now = await server.memory();
    unchanged = now < memory ? 0 : unchanged + 1;
    memory = Math.min(memory, now);
  }
  return memory;
}

function isRecord(value: Anything): value is Record<string, Anything> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function mib(bytes: number): number {
  return Math.round(bytes / 1024 / 1024);
}
