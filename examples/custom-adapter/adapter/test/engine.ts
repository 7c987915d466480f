/** A corner of a Restate server for one requirement of the kit: a workflow of its own, behind a faulty proxy. */
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { Answer, Json } from "@taskferry/core";
import type { Drive, DrivenRun, Subject } from "@taskferry/testkit";
import { restateWorkflow } from "../src/index.js";
import { type Faults, faultyProxy } from "./faulty-proxy.js";
import { type Command, kitWorkflow } from "./kit-workflow.js";
import { type Restate, startRestate } from "./restate.js";

/** More than there are requirements. */
const SERVICES = 120;

/** A running server, and how to make subjects on it. */
export async function restateSubjects(): Promise<{
  create(): Promise<Subject<Engine>>;
  stop(): Promise<void>;
}> {
  const restate = await startRestate();
  await restate.deploy(Array.from({ length: SERVICES }, (_, index) => kitWorkflow(`kit-${index}`)));
  let taken = 0;
  return {
    create: async () => {
      const engine = new Engine(restate, `kit-${taken++}`);
      const ingress = await faultyProxy(restate.ingressUrl, engine.token, engine.faults);
      const admin = await faultyProxy(restate.adminUrl, engine.token, engine.faults);
      const { service, token } = engine;
      return {
        engine,
        connect: () => restateWorkflow({ service, token, ingressUrl: ingress.url, adminUrl: admin.url }),
        close: () => {
          ingress.close();
          admin.close();
        },
      };
    },
    stop: () => restate.stop(),
  };
}

export class Engine {
  readonly token = `token-${randomUUID()}`;
  readonly faults: Faults = {};
  readonly #commands = new Map<string, number>();

  constructor(
    private readonly restate: Restate,
    readonly service: string,
  ) {}

  /** Past the proxy. */
  async ingress(run: DrivenRun, handler: string, body: Json): Promise<Json> {
    const { status, said } = await send(
      "POST",
      `${this.restate.ingressUrl}/${this.service}/${run.key}/${handler}`,
      body,
    );
    if (status >= 300) throw new Error(`${handler}: ${said}`);
    return said === "" ? null : (JSON.parse(said) as Json);
  }

  admin(method: string, path: string, body?: Json): Promise<{ status: number; said: string }> {
    return send(method, this.restate.adminUrl + path, body);
  }

  async tell(run: DrivenRun, command: Command): Promise<void> {
    const number = this.#commands.get(run.key) ?? 0;
    this.#commands.set(run.key, number + 1);
    await this.ingress(run, "command", { number, command });
    if (command.act === "finish" || command.act === "fail") return;
    await eventually(async () => ((await this.ingress(run, "told", "heeded")) as number) > number);
  }
}

export const drive: Drive<Engine> = {
  runs: async (engine) => {
    const query = `select id from sys_invocation where target_handler_name = 'run' and target_service_name = '${engine.service}'`;
    const { said } = await engine.admin("POST", "/query", { query });
    return (JSON.parse(said) as { rows: unknown[] }).rows.length;
  },
  inputOf: async (engine, run) => {
    await eventually(async () => (await engine.ingress(run, "told", "input")) !== null);
    return engine.ingress(run, "told", "input");
  },
  secrets: (engine) => [engine.token],

  finish: (engine, run, value) => engine.tell(run, { act: "finish", value }),
  fail: (engine, run, { message }) => engine.tell(run, { act: "fail", message }),
  progress: (engine, run, done, total) => engine.tell(run, { act: "progress", done, total }),
  deferStop: (engine, run) => engine.tell(run, { act: "ignoreStop" }),
  ask: (engine, run) => engine.tell(run, { act: "ask" }),
  withdraw: (engine, run) => engine.tell(run, { act: "withdraw" }),
  answers: async (engine, run) => {
    const answers = ((await engine.ingress(run, "told", "answers")) ?? []) as unknown as Answer[];
    return answers.map(({ action, content }) => ({
      accepted: action === "accept",
      ...(content && { content }),
    }));
  },
  vanish: async (engine, run) => {
    const { invocationId } = run.ref as { invocationId: string };
    await engine.admin("PATCH", `/invocations/${invocationId}/kill`);
    await eventually(
      async () => (await engine.admin("PATCH", `/invocations/${invocationId}/purge`)).status < 300,
    );
  },
  unknownWord: (engine) => {
    engine.faults.word = "hibernating";
    return "hibernating";
  },
  // What an operator does to keep a service from the outside.
  reject: async (engine) =>
    void (await engine.admin("PATCH", `/services/${engine.service}`, { public: false })),
  throttle: ({ faults }, retryAfterMs) => {
    faults.network = { retryAfterMs };
  },
  disconnect: ({ faults }) => {
    faults.network = "broken";
  },
  hang: ({ faults }) => {
    faults.network = "hanging";
  },
  loseStartResponse: ({ faults }) => {
    faults.losesNextStart = true;
  },
};

async function send(method: string, url: string, body?: Json): Promise<{ status: number; said: string }> {
  const response = await fetch(url, {
    method,
    headers: { accept: "application/json", "content-type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(20_000),
  });
  return { status: response.status, said: await response.text() };
}

async function eventually(test: () => Promise<boolean>): Promise<void> {
  for (const deadline = Date.now() + 20_000; !(await test()); await delay(20)) {
    if (Date.now() > deadline) throw new Error("It did not come about within 20 s");
  }
}
