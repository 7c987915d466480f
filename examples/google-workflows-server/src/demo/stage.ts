/** Where the stories play: Google Cloud, the server that comes and goes, and the clients. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DraftClient } from "./draft-client.js";
import { GoogleCloud } from "./google-cloud.js";
import { LegacyClient } from "./legacy-client.js";
import { ModernClient } from "./modern-client.js";
import { type ServerProcess, startServer } from "./server-process.js";
import type { Answerer, TaskClient } from "./task-client.js";

const GENERATIONS = [DraftClient, LegacyClient, ModernClient];

export class Stage {
  private constructor(
    readonly google: GoogleCloud,
    private readonly home: string,
    private server: ServerProcess,
  ) {}

  static async open(): Promise<Stage> {
    const google = await GoogleCloud.open();
    const home = await mkdtemp(join(tmpdir(), "taskferry-google-"));
    return new Stage(google, home, await startServer(home, google.environment));
  }

  get url(): string {
    return this.server.url;
  }

  get pushUrl(): string {
    return new URL("/events", this.url).href;
  }

  killServer(): Promise<void> {
    return this.server.kill();
  }

  async startServer(): Promise<void> {
    this.server = await startServer(this.home, this.google.environment);
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
    await this.google.close();
    await rm(this.home, { recursive: true, force: true, maxRetries: 5 });
  }
}

function neverAsked(generation: string): Answerer {
  return (message) => {
    throw new Error(`${generation} was asked: ${message}`);
  };
}
