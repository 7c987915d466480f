/**
 * An engine in memory with an HTTP API, so that the first kit run is green. Replace it: by your engine on a free port,
 * by its emulator, or by a server that answers as your engine's documentation says.
 */
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import type { Json, Question, RunFailure, RunProgress } from "@taskferry/core";

export interface Job {
  readonly id: string;
  readonly key: string;
  readonly input: Json;
  state: string;
  progress?: RunProgress;
  questions: Question[];
  value?: Json;
  error?: RunFailure;
  ignoresStop?: boolean;
  readonly answers: { readonly accepted: boolean; readonly content?: Json }[];
}

const ENDED = ["done", "failed", "stopped"];

export class Engine {
  readonly token = `token-${randomUUID()}`;
  readonly jobs = new Map<string, Job>();
  /** How calls go. */
  network: "fair" | "hanging" | "broken" | { readonly retryAfterMs: number } = "fair";
  queues = false;
  rejects = false;
  losesNextStart = false;
  asked = 0;
  readonly #server = createServer((req, res) => {
    this.#serve(req, res).catch(() => res.destroy());
  });

  static async listen(): Promise<Engine> {
    const engine = new Engine();
    await new Promise<void>((resolve) => engine.#server.listen(0, "127.0.0.1", resolve));
    return engine;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const body = req.method === "POST" ? ((await json(req).catch(() => null)) as Body | null) : null;
    const answer = (status: number, said: unknown = {}) =>
      void res.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(said));
    if (this.network === "hanging") return;
    if (this.network === "broken") return void res.destroy();
    if (this.network !== "fair") {
      return void res.writeHead(429, { "retry-after": String(this.network.retryAfterMs / 1000) }).end();
    }
    if (req.headers.authorization !== `Bearer ${this.token}`) return answer(401);

    const [, , id = "", action, questionKey] = (req.url ?? "").split("/");
    if (id === "") return this.#start(body as Start, res, answer);
    const job = this.jobs.get(id);
    if (job === undefined) return answer(404);
    if (action === undefined) return answer(200, job);
    if (action === "stop") {
      if (!ENDED.includes(job.state) && !job.ignoresStop) job.state = "stopped";
      return answer(202);
    }
    if (!job.questions.some(({ key }) => key === questionKey)) return answer(410);
    job.questions = job.questions.filter(({ key }) => key !== questionKey);
    job.answers.push(body as Job["answers"][number]);
    if (job.questions.length === 0) job.state = "running";
    answer(200);
  }

  #start({ key, input }: Start, res: ServerResponse, answer: (status: number, said?: unknown) => void) {
    if (this.rejects) {
      answer(403, { message: `Not allowed: ${JSON.stringify(input)}` });
      return;
    }
    const known = [...this.jobs.values()].find((job) => job.key === key);
    const state = this.queues ? "queued" : "running";
    const job: Job = known ?? { id: randomUUID(), key, input, state, questions: [], answers: [] };
    this.jobs.set(job.id, job);
    if (this.losesNextStart) {
      this.losesNextStart = false;
      res.destroy();
    } else {
      answer(201, job);
    }
  }
}

interface Start {
  readonly key: string;
  readonly input: Json;
}

type Body = Start | Job["answers"][number];
