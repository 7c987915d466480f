/** One cell of the crash matrix: a story, a server that dies in it, its successor, and whether all is true in the end. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ChaosClient, type Generation, Unreachable } from "./client.js";
import type { Fault, Point } from "./faults.js";
import { type EngineKind, runsIn } from "./file-engine.js";
import type { ServerOptions } from "./server.js";

export interface Cell {
  readonly kind: EngineKind;
  readonly generation: Generation;
  readonly database: "SQLite" | "PostgreSQL";
  readonly fault: Fault & { readonly point: Point };
}

export interface CellResult {
  readonly cell: Cell;
  /** Whether the fault point was reached and killed a server. */
  readonly died: boolean;
  /** How the task ended for its client. */
  readonly status: string;
  readonly problems: readonly string[];
}

const LIMIT_MS = 25_000;
const CANCELS = /cancel|stop/;

export async function playCell(cell: Cell, postgresUrl: string | undefined): Promise<CellResult> {
  const folder = await mkdtemp(join(tmpdir(), "taskferry-chaos-"));
  const engineFolder = join(folder, "engine");
  const sweeps = cell.fault.point === "store sweep";
  const schema = `chaos_${Math.random().toString(36).slice(2)}`;
  const database =
    cell.database === "SQLite" ? { path: join(folder, "tasks.db") } : { url: postgresUrl ?? "", schema };
  const servers = new Servers(
    { database, engineFolder, kind: cell.kind, retentionMs: sweeps ? 50 : 60_000 },
    cell.fault,
  );
  const story = new Story(cell, servers, engineFolder);
  try {
    const status = await story.play();
    return { cell, died: servers.died, status, problems: story.problems };
  } catch (error) {
    return { cell, died: servers.died, status: "?", problems: [...story.problems, (error as Error).message] };
  } finally {
    await servers.stop();
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** The server with the fault, and then one without. */
class Servers {
  died = false;
  private child: ChildProcess | undefined;
  private url: string | undefined;

  constructor(
    private readonly options: Omit<ServerOptions, "fault">,
    private readonly fault: Fault,
  ) {}

  /** The URL of a server that lives, as far as it is known. */
  async running(): Promise<string> {
    if (
      this.child !== undefined &&
      this.child.exitCode === null &&
      this.child.signalCode === null &&
      this.url
    )
      return this.url;
    if (this.child !== undefined) this.died = true;
    const script = fileURLToPath(new URL("./server.js", import.meta.url));
    const options: ServerOptions = this.died ? this.options : { ...this.options, fault: this.fault };
    const child = spawn(process.execPath, [script, JSON.stringify(options)], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.child = child;
    this.url = undefined;
    let said = "";
    child.stderr.on("data", (chunk) => {
      said += chunk;
    });
    const url = await Promise.race([
      once(child.stdout, "data").then(([line]) => String(line).trim()),
      once(child, "exit").then(() => undefined),
    ]);
    if (url === undefined && said !== "") throw new Error(`The server did not start: ${said.slice(0, 500)}`);
    if (url === undefined) return this.running();
    this.url = url;
    return url;
  }

  async stop(): Promise<void> {
    if (this.child === undefined || this.child.exitCode !== null || this.child.signalCode !== null) return;
    const gone = once(this.child, "exit");
    this.child.kill("SIGKILL");
    await gone;
  }
}

/** What a client does, again and again until it has been done. */
class Story {
  readonly problems: string[] = [];
  private readonly client: ChaosClient;
  private readonly until = Date.now() + LIMIT_MS;

  constructor(
    private readonly cell: Cell,
    private readonly servers: Servers,
    private readonly engineFolder: string,
  ) {
    this.client = new ChaosClient(cell.generation, `key-${Math.random().toString(36).slice(2)}`);
  }

  async play(): Promise<string> {
    const cancels = CANCELS.test(this.cell.fault.point);
    const sweeps = this.cell.fault.point === "store sweep";
    await this.again("create", (url) => this.client.create(url));
    let seen = await this.poll(
      "the question",
      (task) => task.status !== "submitted" && task.status !== "working",
    );
    if (seen.status === "input_required") {
      if (cancels) await this.cancel();
      else await this.again("answer", (url) => this.client.answer(url, seen));
      if (sweeps) return this.expire();
      seen = await this.poll(
        "the end",
        (task) => !["submitted", "working", "input_required"].includes(task.status),
      );
    }
    await this.judge(seen, cancels);
    return seen.status;
  }

  private async cancel(): Promise<void> {
    await this.again("cancel", (url) => this.client.cancel(url));
    const { generation, fault } = this.cell;
    if (generation !== "draft" || fault.when !== "before" || fault.point !== "write cancel.requested") return;
    // The draft's cancel is a notification, and has no answer: one that was lost before it was written is sent again.
    while (!this.servers.died) {
      await this.again("get", (url) => this.client.get(url));
      this.inTime("the server's death");
      await pause();
    }
    await this.again("cancel", (url) => this.client.cancel(url));
  }

  /** An expired task is gone, once, and says so. */
  private async expire(): Promise<string> {
    for (;;) {
      const answer = await this.again("get", (url) => this.client.get(url).catch((error: Error) => error));
      if (answer instanceof Error && !(answer instanceof Unreachable)) {
        if (!answer.message.includes("expired"))
          this.problems.push(`after its end the task says: ${answer.message}`);
        return "expired";
      }
      this.inTime("the expiry");
      await pause();
    }
  }

  private async judge(
    task: { status: string; error?: unknown; statusMessage?: string },
    cancels: boolean,
  ): Promise<void> {
    const runs = runsIn(this.engineFolder);
    if (runs.length > 1) this.problems.push(`the run was started ${runs.length} times`);
    const lost = task.status === "failed" || task.status === "unknown";
    if (lost) {
      const said = JSON.stringify(task);
      if (this.cell.kind !== "neither") this.problems.push(`lost although the engine can tell: ${said}`);
      else if (!said.includes("outcome unknown") && !said.includes("was not started again"))
        this.problems.push(`lost without a word: ${said}`);
      return;
    }
    if (cancels) {
      if (task.status !== "cancelled") this.problems.push(`a cancelled task is ${task.status}`);
      // The stop is owed until it is done, whoever serves by then; the server may die just after it.
      while (!this.servers.died || runsIn(this.engineFolder).some((run) => !run.stopped)) {
        await this.servers.running();
        this.inTime("the stop");
        await pause();
      }
      const after = await this.again("get", (url) => this.client.get(url));
      if (after.status !== "cancelled") this.problems.push(`a cancelled task became ${after.status}`);
      return;
    }
    if (task.status !== "completed") this.problems.push(`an answered task is ${task.status}`);
    if (runs.length !== 1 || runs[0]?.answered !== true) this.problems.push("the engine has no answer");
  }

  // biome-ignore lint/suspicious/noExplicitAny: three generations of shapes
  private async poll(what: string, good: (task: any) => boolean): Promise<any> {
    for (;;) {
      const task = await this.again("get", (url) => this.client.get(url));
      if (good(task)) return task;
      this.inTime(`${what} (${JSON.stringify(task)})`);
      await pause();
    }
  }

  /** Does something until a server has answered. */
  private async again<T>(what: string, act: (url: string) => Promise<T>): Promise<T> {
    for (;;) {
      const url = await this.servers.running();
      try {
        return await act(url);
      } catch (error) {
        if (!(error instanceof Unreachable)) throw new Error(`${what}: ${(error as Error).message}`);
        this.inTime(what);
        await pause();
      }
    }
  }

  private inTime(what: string): void {
    if (Date.now() > this.until) throw new Error(`${what} did not come within ${LIMIT_MS} ms`);
  }
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 25));
}
