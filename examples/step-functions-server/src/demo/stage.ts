/** Where the stories play: the cloud, the server that comes and goes, and the clients. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TaskClient } from "@taskferry/client";
import { type Answerer, openClients, type ServerProcess, startServer } from "@taskferry/example-stage";
import { type Cloud, openCloud } from "./cloud.js";

const SERVER = new URL("../server.js", import.meta.url);

export class Stage {
  private constructor(
    readonly cloud: Cloud,
    private readonly home: string,
    private server: ServerProcess,
  ) {}

  static async open(): Promise<Stage> {
    const cloud = await openCloud();
    const home = await mkdtemp(join(tmpdir(), "taskferry-step-functions-"));
    return new Stage(cloud, home, await serve(home, cloud));
  }

  get url(): string {
    return this.server.url;
  }

  killServer(): Promise<void> {
    return this.server.kill();
  }

  async startServer(): Promise<void> {
    this.server = await serve(this.home, this.cloud);
  }

  /** One client of each generation. Each asks `answerer` with its own name. */
  clients(answerer?: (generation: string) => Answerer): Promise<TaskClient[]> {
    return openClients(this.url, answerer);
  }

  async close(): Promise<void> {
    await this.server.kill();
    await this.cloud.close();
    await rm(this.home, { recursive: true, force: true, maxRetries: 5 });
  }
}

function serve(home: string, { arns, endpoint }: Cloud): Promise<ServerProcess> {
  return startServer(SERVER, {
    ...arns,
    TASKFERRY_HOME: home,
    // All that tells the emulator from AWS: the SDK reads these by itself.
    AWS_ENDPOINT_URL_SFN: endpoint,
    AWS_ACCESS_KEY_ID: "test",
    AWS_SECRET_ACCESS_KEY: "test",
    AWS_SESSION_TOKEN: "",
    NODE_NO_WARNINGS: "1",
  });
}
