/** The adapter contract, and a server around the adapter, played by the kit against the protocol server. */
import { SFNClient } from "@aws-sdk/client-sfn";
import {
  type Drive,
  type DrivenRun,
  type ReceivedAnswer,
  type Subject,
  testAdapter,
  testServer,
} from "@taskferry/testkit";
import type { Branch, ProtocolExecution } from "../emulator/src/protocol-execution.js";
import {
  ACCOUNT,
  cut,
  hang,
  ProtocolError,
  ProtocolServer,
  refuse,
} from "../emulator/src/protocol-server.js";
import { stepFunctions } from "../src/index.js";

const SECRETS = {
  accessKeyId: "AKIDKITACCESSKEY",
  secretAccessKey: "kit-secret-access-key-77",
  push: "kit-push-55",
};
/** As many as the SDK makes. */
const ATTEMPTS = 3;

function executionOf(server: ProtocolServer, { ref }: DrivenRun): ProtocolExecution {
  return server.execution((ref as { executionArn: string }).executionArn);
}

/** Branches that have not asked yet: questions that are open at once need one each. */
const branches = new WeakMap<ProtocolExecution, Branch[]>();

function nextBranch(execution: ProtocolExecution): Branch {
  const idle = branches.get(execution) ?? execution.main.parallel("Ask all", 5);
  branches.set(execution, idle);
  const branch = idle.shift();
  if (branch === undefined) throw new Error("all branches have asked");
  return branch;
}

function delivery(executionArn: string) {
  const event = {
    source: "aws.states",
    "detail-type": "Step Functions Execution Status Change",
    detail: { executionArn, status: "RUNNING" },
  };
  const headers = { "content-type": "application/json", "x-taskferry-secret": SECRETS.push };
  return { headers, body: new TextEncoder().encode(JSON.stringify(event)) };
}

const drive: Drive<ProtocolServer> = {
  runs: (server) => server.executions.size,
  inputOf: (server, run) => JSON.parse(executionOf(server, run).input),
  maxInputBytes: () => 262_144,
  secrets: () => Object.values(SECRETS),

  finish: (server, run, value) => void executionOf(server, run).succeed(value),
  fail: (server, run, { code, message }) => void executionOf(server, run).fail(code, message),
  progress: (server, run, done, total) => {
    const iterations = executionOf(server, run).main.map("Each", total);
    for (const iteration of iterations.slice(0, done)) {
      iteration.add("MapIterationSucceeded", { mapIterationSucceededEventDetails: { name: "Each" } });
    }
  },
  unknownWord: (server, run) => {
    executionOf(server, run).status = "HIBERNATING";
    return "HIBERNATING";
  },
  vanish: (server, run) => void server.executions.delete(executionOf(server, run).executionArn),
  deferStop: (server) => server.always("StopExecution", async () => ({ stopDate: Date.now() / 1000 })),

  ask: (server, run) => {
    const schema = { type: "object", properties: { note: { type: "string" } } };
    nextBranch(executionOf(server, run)).waitForToken("Ask", (taskToken) => {
      return { MessageBody: { taskToken, message: "Go on?", schema } };
    });
  },
  withdraw: (server, run) => {
    for (const token of executionOf(server, run).tokens) {
      token.open = false;
      token.branch.add("TaskTimedOut", { taskTimedOutEventDetails: { error: "States.Timeout" } });
    }
  },
  answers: (server, run) =>
    executionOf(server, run).events.flatMap((event): ReceivedAnswer[] => {
      if (event.type === "TaskFailed") return [{ accepted: false }];
      if (event.type !== "TaskSucceeded") return [];
      const { output } = event.taskSucceededEventDetails as { output: string };
      return [{ accepted: true, content: JSON.parse(output) }];
    }),

  throttle: (server) => server.always("*", refuse("ThrottlingException")),
  reject: (server) =>
    server.always("StartExecution", async (_, { input }) => {
      throw new ProtocolError("AccessDeniedException", 400, `no right to start with ${String(input)}`);
    }),
  disconnect: (server) => server.always("*", cut("before")),
  hang: (server) => server.always("*", hang()),
  loseStartResponse: (server) =>
    server.next("StartExecution", ...Array.from({ length: ATTEMPTS }, () => cut("after"))),

  event: (server, run) => delivery(executionOf(server, run).executionArn),
  foreignEvent: () => delivery(`${ACCOUNT}:execution:someone-elses:run`),
};

async function create(): Promise<Subject<ProtocolServer>> {
  const server = await ProtocolServer.open();
  const stateMachineArn = server.createMachine("kit");
  const clients: SFNClient[] = [];
  return {
    engine: server,
    connect: () => {
      const { accessKeyId, secretAccessKey } = SECRETS;
      const client = new SFNClient({
        endpoint: server.endpoint,
        region: "us-east-1",
        credentials: { accessKeyId, secretAccessKey },
        maxAttempts: ATTEMPTS,
      });
      clients.push(client);
      return stepFunctions({
        stateMachineArn,
        client,
        push: { secret: SECRETS.push },
        // The server's reads never lag, and nothing has to be spared.
        appearsWithinMs: 1,
        readsPerSecond: 1000,
      });
    },
    close: async () => {
      for (const client of clients) client.destroy();
      await server.close();
    },
  };
}

testServer({ create, drive });

testAdapter({
  create,
  drive,
  skip: [
    { drive: "queue", reason: "Executions have no queue: they are RUNNING from their start" },
    {
      drive: "omitStartId",
      reason: "An execution's ARN follows from the name that the adapter gives it, so none is ever unnamed",
    },
    {
      drive: "revive",
      reason:
        "The kit revives a run that ended well; AWS redrives only what failed, timed out or was aborted (read.test.ts does)",
    },
    {
      id: "errors.retry-after",
      reason: "Step Functions does not say for how long it wants to be left alone",
    },
    {
      id: "questions.answered-twice",
      reason:
        "The history tells that this very answer has arrived, as after a lost response: it counts as delivered and is not sent again. Another answer is `gone` (questions.test.ts)",
    },
    {
      id: "events.tampered",
      reason:
        "EventBridge proves its deliveries with a secret header; it signs no bodies. They only cause reads",
    },
  ],
});
