/** Where the stories play: GitHub, the server that comes and goes, and the clients. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TaskClient } from "@taskferry/client";
import { type Answerer, openClients, type ServerProcess, startServer } from "@taskferry/example-stage";
import { GitHub } from "./github.js";

const SERVER = new URL("../server.js", import.meta.url);

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
    return new Stage(github, home, await serve(home, github));
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
    this.server = await serve(this.home, this.github);
    this.github.webhookUrl = this.webhookUrl;
  }

  /** One client of each generation. Each asks `answerer` with its own name. */
  clients(answerer?: (generation: string) => Answerer): Promise<TaskClient[]> {
    return openClients(this.url, answerer);
  }

  async close(): Promise<void> {
    await this.server.kill();
    await this.github.server.close();
    await rm(this.home, { recursive: true, force: true, maxRetries: 5 });
  }
}

function serve(home: string, github: GitHub): Promise<ServerProcess> {
  return startServer(SERVER, { ...github.environment, TASKFERRY_HOME: home });
}
