/** Where the stories play: Google Cloud, the server that comes and goes, and the clients. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TaskClient } from "@taskferry/client";
import { type Answerer, openClients, type ServerProcess, startServer } from "@taskferry/example-stage";
import { GoogleCloud } from "./google-cloud.js";

const SERVER = new URL("../server.js", import.meta.url);

export class Stage {
  private constructor(
    readonly google: GoogleCloud,
    private readonly home: string,
    private server: ServerProcess,
  ) {}

  static async open(): Promise<Stage> {
    const google = await GoogleCloud.open();
    const home = await mkdtemp(join(tmpdir(), "taskferry-google-"));
    return new Stage(google, home, await serve(home, google));
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
    this.server = await serve(this.home, this.google);
  }

  /** One client of each generation. Each asks `answerer` with its own name. */
  clients(answerer?: (generation: string) => Answerer): Promise<TaskClient[]> {
    return openClients(this.url, answerer);
  }

  async close(): Promise<void> {
    await this.server.kill();
    await this.google.close();
    await rm(this.home, { recursive: true, force: true, maxRetries: 5 });
  }
}

function serve(home: string, google: GoogleCloud): Promise<ServerProcess> {
  return startServer(SERVER, { ...google.environment, TASKFERRY_HOME: home, NODE_NO_WARNINGS: "1" });
}
