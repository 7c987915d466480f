/** Where the stories play: the cloud, the server that comes and goes, and the clients. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Cloud, openCloud } from "./cloud.js";
import { DraftClient } from "./draft-client.js";
import { LegacyClient } from "./legacy-client.js";
import { ModernClient } from "./modern-client.js";
import { type ServerProcess, startServer } from "./server-process.js";
import type { Answerer, TaskClient } from "./task-client.js";

const GENERATIONS = [DraftClient, LegacyClient, ModernClient];

export class Stage {
  private constructor(
    readonly cloud: Cloud,
    private readonly home: string,
    private server: ServerProcess,
  ) {}

  static async open(): Promise<Stage> {
    const cloud = await openCloud();
    const home = await mkdtemp(join(tmpdir(), "taskferry-step-functions-"));
    return new Stage(cloud, home, await startServer(home, cloud));
  }

  get url(): string {
    return this.server.url;
  }

  killServer(): Promise<void> {
    return this.server.kill();
  }

  async startServer(): Promise<void> {
    this.server = await startServer(this.home, this.cloud);
  }

  /** One client of each generation. Each tells its questions to `answerer`, with its own name. */
  clients(answerer: (generation: string) => Answerer = neverAsked): Promise<TaskClient[]> {
    return Promise.all(
      GENERATIONS.map(async (generation): Promise<TaskClient> => {
        const client: TaskClient = await generation.connect(this.url, (message) =>
          answerer(client.generation)(message),
        );
        return client;
      }),
    );
  }

  async close(): Promise<void> {
    await this.server.kill();
    await this.cloud.close();
    await rm(this.home, { recursive: true, force: true, maxRetries: 5 });
  }
}

function neverAsked(generation: string): Answerer {
  return (message) => {
    throw new Error(`${generation} was asked: ${message}`);
  };
}
