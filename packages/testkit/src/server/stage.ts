import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  createTaskEngine,
  defineWorkflow,
  type Generation,
  type HttpServer,
  type Json,
  type RunState,
  type StartedRun,
  serveHttp,
  type TaskEngine,
  type WorkflowAdapter,
} from "@taskferry/core";
import { sqliteStore } from "@taskferry/core/sqlite";
import { type BoundDrive, bindDrive, type Drive, type DrivenRun, type Subject } from "../drive.js";
import { hasEnded } from "../scene.js";
import { DraftClient } from "./draft-client.js";
import { LegacyClient } from "./legacy-client.js";
import { ModernClient } from "./modern-client.js";
import { type Asked, accepting, type TaskClient, TOOL } from "./task-client.js";
import { until } from "./until.js";

const CLIENTS: Record<Generation, { connect(url: string, asked: Asked): Promise<TaskClient> }> = {
  draft: DraftClient,
  "2025-11-25": LegacyClient,
  "2026-07-28": ModernClient,
};

export interface StageOptions<Engine> {
  readonly create: () => Subject<Engine> | Promise<Subject<Engine>>;
  readonly drive: Drive<Engine>;
  readonly patienceMs: number;
}

/** The stage of one server requirement: a fresh native engine, the adapter on it, and a real server on top. */
export class ServerStage {
  /** The adapter instance that the running server has. */
  adapter!: WorkflowAdapter;
  readonly patienceMs: number;
  readonly asked = accepting();
  readonly #started: DrivenRun[] = [];
  readonly #clients = new Set<TaskClient>();
  #startFailed: unknown;
  #engine: TaskEngine | undefined;
  #server: HttpServer | undefined;

  private constructor(
    private readonly subject: Subject<unknown>,
    readonly drive: BoundDrive,
    private readonly input: Json,
    private readonly folder: string,
    patienceMs: number,
  ) {
    this.patienceMs = patienceMs;
  }

  static async open<Engine>({ create, drive, patienceMs }: StageOptions<Engine>): Promise<ServerStage> {
    const subject = await create();
    const payload = { note: "a run of the kit" };
    const input = (await drive.input?.(subject.engine, payload)) ?? payload;
    const folder = await mkdtemp(join(tmpdir(), "taskferry-testkit-"));
    const bound = bindDrive(drive, subject.engine);
    const stage = new ServerStage(subject, bound, input, folder, patienceMs);
    await stage.#serve();
    return stage;
  }

  /** A client of this generation in a session of its own. */
  async connect(generation: Generation): Promise<TaskClient> {
    assert.ok(this.#server);
    const client = await CLIENTS[generation].connect(this.#server.url, this.asked);
    this.#clients.add(client);
    return client;
  }

  /** The one native run that was started. */
  async run(): Promise<DrivenRun> {
    const one = async () => {
      if (this.#startFailed !== undefined) throw this.#startFailed;
      return this.#started;
    };
    const [run] = await until("the start of the run", one, (runs) => runs.length > 0, this.patienceMs);
    assert.equal(this.#started.length, 1, "the adapter was asked to start more than once");
    return run as DrivenRun;
  }

  /** Asks again until there is an answer. */
  async eventually<Value>(what: string, ask: () => Promise<Value | undefined>): Promise<Value> {
    return (await until(what, ask, (value) => value !== undefined, this.patienceMs)) as Value;
  }

  /** Reads the native run past the server, until the state is as wanted. */
  untilNative(run: DrivenRun, what: string, satisfies: (state: RunState) => boolean): Promise<RunState> {
    const signal = new AbortController().signal;
    const isClaimed = async () => false;
    const read = () =>
      this.adapter.read(run.ref, { key: run.key, ageMs: this.patienceMs, signal, isClaimed });
    return until(what, read, satisfies, this.patienceMs);
  }

  untilEnded(run: DrivenRun): Promise<RunState> {
    return this.untilNative(run, "the native end of the run", ({ status }) => hasEnded(status));
  }

  /** Closes everything down to the adapter, and starts it anew: only the database is left, and the native engine. */
  async restart(): Promise<void> {
    await this.#shut();
    await this.#serve();
  }

  async close(): Promise<void> {
    await this.#shut();
    await this.subject.close?.();
    await rm(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }

  async #serve(): Promise<void> {
    this.adapter = await this.subject.connect();
    const workflow = defineWorkflow({
      name: TOOL,
      adapter: this.#overheard(this.adapter),
      toNative: () => this.input,
      pollMs: 50,
    });
    const store = await sqliteStore({ path: join(this.folder, "tasks.db") });
    this.#engine = await createTaskEngine({ workflows: [workflow], store, timing: { tickMs: 100 } });
    this.#server = await serveHttp(this.#engine, { name: "taskferry-testkit", version: "0" });
  }

  async #shut(): Promise<void> {
    await Promise.allSettled([...this.#clients].map((client) => client.close()));
    this.#clients.clear();
    await this.#server?.close();
    await this.#engine?.close();
    await this.adapter?.close?.();
  }

  /** The same adapter, which tells the drive what was started. A proxy, so that classes with private fields go through. */
  #overheard(adapter: WorkflowAdapter): WorkflowAdapter {
    const note = (run: DrivenRun) => {
      const known = this.#started.findIndex(({ key }) => key === run.key);
      if (known < 0) this.#started.push(run);
      else this.#started[known] = run;
    };
    const start: WorkflowAdapter["start"] = async (request) => {
      const started: StartedRun = await adapter.start(request).catch((error: unknown) => {
        this.#startFailed = error;
        throw error;
      });
      note({ key: request.key, ref: started.ref, input: request.input });
      return started;
    };
    const read: WorkflowAdapter["read"] = async (ref, request) => {
      const state = await adapter.read(ref, request);
      if (state.ref !== undefined) note({ key: request.key, ref: state.ref, input: this.input });
      return state;
    };
    return new Proxy(adapter, {
      get(target, name) {
        if (name === "start") return start;
        if (name === "read") return read;
        const member: unknown = Reflect.get(target, name);
        return typeof member === "function" ? member.bind(target) : member;
      },
    });
  }
}
