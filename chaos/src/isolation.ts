/** Many owners, random operations: never a trace of another's task, in errors, lists, totals or cursors. */
import { createTaskEngine, defineWorkflow, serveHttp } from "@taskferry/core";
import { sqliteStore } from "@taskferry/core/sqlite";
import fc from "fast-check";

// biome-ignore lint/suspicious/noExplicitAny: JSON-RPC by hand
type Json = any;

const OWNERS = ["ann", "bob", "cem"] as const;
/** Few, so that owners choose the same. */
const DRAFT_IDS = ["a", "b", "task-1"];

interface Operation {
  readonly owner: (typeof OWNERS)[number];
  readonly what:
    | "create"
    | "get"
    | "result"
    | "cancel"
    | "delete"
    | "list"
    | "update"
    | "status tool"
    | "foreign cursor";
  readonly generation: "draft" | "2025-11-25" | "2026-07-28";
  /** Which of all ids that exist, of whomever. */
  readonly pick: number;
}

const operation: fc.Arbitrary<Operation> = fc.record({
  owner: fc.constantFrom(...OWNERS),
  what: fc.constantFrom(
    "create",
    "create",
    "get",
    "result",
    "cancel",
    "delete",
    "list",
    "update",
    "status tool",
    "foreign cursor",
  ),
  generation: fc.constantFrom("draft", "2025-11-25", "2026-07-28"),
  pick: fc.nat(50),
}) as fc.Arbitrary<Operation>;

export async function isolation(runs: number): Promise<boolean> {
  const engine = await createTaskEngine({
    store: await sqliteStore({ path: ":memory:" }),
    limits: {
      createPerMinute: 1e9,
      getPerMinute: 1e9,
      resultPerMinute: 1e9,
      listPerMinute: 1e9,
      concurrentTasks: 1e9,
    },
    workflows: [
      defineWorkflow({
        name: "flow",
        pollMs: 3_600_000,
        adapter: {
          engine: "still",
          startsOnce: true,
          start: async ({ key }) => ({
            ref: key,
            state: { native: "DONE", status: "completed", output: { value: { key } } },
          }),
          read: async () => ({ native: "DONE", status: "completed" }),
        },
      }),
    ],
  });
  let round = 0;
  const server = await serveHttp(engine, {
    name: "isolation",
    version: "0",
    verify: (token) => ({ issuer: "test", subject: token }),
  });
  let operations = 0;
  try {
    await fc.assert(
      fc.asyncProperty(fc.array(operation, { minLength: 5, maxLength: 40 }), async (all) => {
        round += 1;
        const world = new World(server.url, `${round}`);
        for (const each of all) {
          operations += 1;
          await world.play(each);
        }
      }),
      { numRuns: runs },
    );
    console.log(`isolation: ${runs} random histories, ${operations} operations, no trace of another's task`);
    return true;
  } catch (error) {
    const { message, cause } = error as Error;
    console.log(`WRONG isolation: ${cause instanceof Error ? cause.message : ""}\n${message}`);
    return false;
  } finally {
    await server.close();
    await engine.close();
  }
}

/** What each owner has made, as far as a model knows, against what the server says. */
class World {
  private readonly owned = new Map<string, Set<string>>(OWNERS.map((owner) => [owner, new Set<string>()]));
  private unknown = 0;

  constructor(
    private readonly url: string,
    private readonly round: string,
  ) {}

  async play({ owner, what, generation, pick }: Operation): Promise<void> {
    if (what === "create") return this.create(owner, generation, pick);
    if (what === "list") return this.list(owner);
    if (what === "foreign cursor") return this.foreignCursor(owner, pick);
    const ids = [...new Set([...this.owned.values()].flatMap((set) => [...set]))];
    const taskId = ids[pick % Math.max(1, ids.length)];
    if (taskId === undefined) return;
    const mine = this.owned.get(owner)?.has(taskId) === true;
    const answer = await this.about(owner, what, generation, taskId);
    if (mine) {
      if (notFound(answer))
        throw new Error(`${owner} does not find its own ${taskId}: ${JSON.stringify(answer)}`);
      if (what === "delete" && answer.error === undefined) this.owned.get(owner)?.delete(taskId);
      return;
    }
    // The same words as for an id that nobody has.
    const nobody = await this.about(owner, what, generation, `nobody-${this.round}-${this.unknown++}`);
    const [one, other] = [answer, nobody].map((each) => JSON.stringify({ ...each, id: 0 }));
    if (one !== other)
      throw new Error(`${what} tells ${owner} of another's ${taskId}: ${one} instead of ${other}`);
  }

  private async create(owner: string, generation: Operation["generation"], pick: number): Promise<void> {
    const chosen = `${this.round}-${DRAFT_IDS[pick % DRAFT_IDS.length]}`;
    const params: Json = { name: "flow", arguments: {} };
    if (generation === "draft") params._meta = { "modelcontextprotocol.io/task": { taskId: chosen } };
    if (generation === "2025-11-25") params.task = {};
    const { result, error } = await this.call(owner, generation, "tools/call", params);
    const mine = this.owned.get(owner) as Set<string>;
    if (generation !== "draft") mine.add(result.task?.taskId ?? result.taskId);
    else if (mine.has(chosen) !== (error !== undefined))
      throw new Error(`creating ${chosen} for ${owner}: ${JSON.stringify(error)}`);
    else mine.add(chosen);
  }

  private async list(owner: string): Promise<void> {
    const seen = new Set<string>();
    let cursor: string | undefined;
    do {
      const { result } = await this.call(
        owner,
        "2025-11-25",
        "tasks/list",
        cursor === undefined ? {} : { cursor },
      );
      for (const task of result.tasks) seen.add(task.taskId);
      cursor = result.nextCursor;
    } while (cursor !== undefined);
    const mine = this.owned.get(owner) ?? new Set();
    const strange = [...seen].filter(
      (id) => !mine.has(id) && [...this.owned.values()].some((set) => set.has(id)),
    );
    if (strange.length > 0) throw new Error(`${owner} is shown ${strange}`);
    for (const id of mine) if (!seen.has(id)) throw new Error(`${owner} is not shown its own ${id}`);
  }

  private async foreignCursor(owner: string, pick: number): Promise<void> {
    const other = OWNERS[(OWNERS.indexOf(owner as "ann") + 1 + (pick % 2)) % 3] ?? "bob";
    const { result } = await this.call(other, "2025-11-25", "tasks/list", {});
    if (result.nextCursor === undefined) return;
    const { error } = await this.call(owner, "2025-11-25", "tasks/list", { cursor: result.nextCursor });
    if (error?.code !== -32602) throw new Error(`${owner} may use ${other}'s cursor`);
  }

  private about(
    owner: string,
    what: Operation["what"],
    generation: Operation["generation"],
    taskId: string,
  ): Promise<Json> {
    const modern = generation === "2026-07-28";
    const _meta =
      generation === "draft" ? { _meta: { "modelcontextprotocol.io/related-task": { taskId } } } : {};
    switch (what) {
      case "result":
        return this.call(owner, modern ? "2025-11-25" : generation, "tasks/result", { taskId, ..._meta });
      case "cancel":
        return this.call(owner, generation, "tasks/cancel", { taskId });
      case "delete":
        return this.call(owner, "draft", "tasks/delete", { taskId, ..._meta });
      case "update":
        return this.call(owner, "2026-07-28", "tasks/update", { taskId, inputResponses: {} });
      case "status tool":
        return this.call(owner, generation, "tools/call", { name: "task_status", arguments: { taskId } });
      default:
        return this.call(owner, generation, "tasks/get", { taskId, ..._meta });
    }
  }

  private async call(
    owner: string,
    generation: Operation["generation"],
    method: string,
    params: Json,
  ): Promise<Json> {
    const modern = generation === "2026-07-28";
    const name = params.name ?? params.taskId;
    const envelope = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": { name: "chaos", version: "0" },
      "io.modelcontextprotocol/clientCapabilities": { extensions: { "io.modelcontextprotocol/tasks": {} } },
    };
    const response = await fetch(this.url, {
      method: "POST",
      headers: {
        authorization: `Bearer ${owner}`,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        ...(modern && {
          "mcp-protocol-version": "2026-07-28",
          "mcp-method": method,
          ...(name !== undefined && { "mcp-name": name }),
        }),
      },
      body: JSON.stringify({
        jsonrpc: "2.0",
        id: 1,
        method,
        params: modern ? { ...params, _meta: { ...params._meta, ...envelope } } : params,
      }),
    });
    const text = await response.text();
    if (text.startsWith("{")) return JSON.parse(text);
    const lines = text
      .split("\n")
      .filter((line) => line.startsWith("data:"))
      .map((line) => JSON.parse(line.slice(5)));
    return lines.find((message) => message.id === 1);
  }
}

function notFound(answer: Json): boolean {
  return JSON.stringify(answer).includes("Task not found");
}
