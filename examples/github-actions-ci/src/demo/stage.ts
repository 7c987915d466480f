/** Where the stories play: GitHub, the server that comes and goes, and the clients. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DraftClient } from "./draft-client.js";
import { GitHub } from "./github.js";
import { LegacyClient } from "./legacy-client.js";
import { ModernClient } from "./modern-client.js";
import { type ServerProcess, startServer } from "./server-process.js";
import type { Answerer, TaskClient } from "./task-client.js";

const GENERATIONS = [DraftClient, LegacyClient, ModernClient];

export class Stage {
  private constructor(
    readonly github: GitHub,
    private readonly home: string,
    private server: ServerProcess,
  ) {
    github.webhookUrl = this.webhookUrl;
  }

  static async open(): Promise<Stage> {
    const github = await GitHub.open();
    const home = await mkdtemp(join(tmpdir(), "taskferry-github-"));
    return new Stage(github, home, await startServer(home, github.environment));
  }

  get url(): string {
    return this.server.url;
  }

  get webhookUrl(): string {
    return new URL("/webhooks/github", this.url).href;
  }

  killServer(): Promise<void> {
    return this.server.kill();
  }

  async startServer(): Promise<void> {
    this.server = await startServer(this.home, this.github.environment);
    this.github.webhookUrl = this.webhookUrl;
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
    await this.github.server.close();
    await rm(this.home, { recursive: true, force: true, maxRetries: 5 });
  }
}

function neverAsked(generation: string): Answerer {
  return (message) => {
    throw new Error(`${generation} was asked: ${message}`);
  };
}
