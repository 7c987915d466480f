/** What happens on the stage. Each story is played by real clients of all three generations. */
import type { TaskClient, ToolResult } from "@taskferry/client";
import {
  type Answerer,
  check,
  PlainClient,
  tell,
  textOf,
  until,
  withClients,
} from "@taskferry/example-stage";
import type { Stage } from "./stage.js";

const REPORT = { topic: "ferries", chapters: ["Hulls", "Harbours", "Tides"], seconds: 2 };
/** How many chapters the report has. */
function chaptersOf(result: ToolResult | undefined): number | undefined {
  const chapters = result?.structuredContent?.["chapters"];
  return Array.isArray(chapters) ? chapters.length : undefined;
}

/** Starts, progress, a server that is killed, and results that are fetched in new sessions. */
export async function reportsSurviveTheServer(stage: Stage): Promise<void> {
  const before = (await stage.cloud.executions()).size;
  const handles = new Map<string, string>();
  const clients = await stage.clients();
  for (const client of clients) {
    const task = await client.start("write_report", REPORT);
    handles.set(client.generation, task.handle);
    tell(client.generation, "started write_report as a task");
    // The founding draft has no status messages.
    if (client.generation === "draft") continue;
    const { message } = await until(
      "a current state",
      () => task.status(),
      (seen) => /In state/.test(seen.message ?? ""),
    );
    tell(client.generation, `sees: ${message}`);
  }
  await stage.killServer();
  await Promise.allSettled(clients.map((client) => client.close()));
  tell("server", "is killed (SIGKILL) while three state machines run");
  await stage.startServer();
  tell("server", "a new one has started on the same data");

  await withClients(await stage.clients(), async (client) => {
    const task = await client.resume(handles.get(client.generation) ?? "");
    const seen = await task.status();
    tell(client.generation, `a new session reads: ${seen.status}${seen.message ? `, ${seen.message}` : ""}`);
    check(
      client.generation,
      "fetched the result",
      chaptersOf((await task.end()).result) === REPORT.chapters.length,
    );
  });
  const started = (await stage.cloud.executions()).size - before;
  check("engine", `${started} executions for 3 tasks`, started === 3);
}

/** A state machine that fails is a result that says why. */
export async function failuresAreResults(stage: Stage): Promise<void> {
  await withClients(await stage.clients(), async (client) => {
    const task = await client.start("write_report", { ...REPORT, chapters: [] });
    const { status, result } = await task.end();
    tell(client.generation, `${status}: ${textOf(result).split("\n")[0]}`);
    const says = ["Report.Empty", "Nothing to write", "A report needs at least one chapter"];
    const told = says.every((words) => textOf(result).includes(words));
    check(client.generation, "was told the error, its cause and the state", result?.isError === true && told);
  });
}

/** A `.waitForTaskToken` state asks; the answer is the state's output. */
export async function approvalsAreAsked(stage: Stage): Promise<void> {
  const approve =
    (generation: string): Answerer =>
    ({ message }) => {
      tell(generation, `is asked: ${message}`);
      return { action: "accept", content: { environment: "staging", note: `by ${generation}` } };
    };
  await withClients(await stage.clients(approve), async (client) => {
    const { result } = await (await client.start("deploy", { service: "ferry", version: "2.0.0" })).end();
    check(
      client.generation,
      "deployed where it said",
      result?.structuredContent?.["environment"] === "staging",
    );
  });
  const decline =
    (generation: string): Answerer =>
    ({ message }) => {
      tell(generation, `declines: ${message}`);
      return { action: "decline" };
    };
  await withClients(await stage.clients(decline), async (client) => {
    const { result } = await (await client.start("deploy", { service: "ferry", version: "3.0.0" })).end();
    check(
      client.generation,
      "the machine took its other way",
      result?.structuredContent?.["deployed"] === false,
    );
  });
}

/** A cancelled task stops the execution, and stays cancelled. */
export async function cancelsReachTheEngine(stage: Stage): Promise<void> {
  const before = await stage.cloud.executions();
  await withClients(await stage.clients(), async (client) => {
    const task = await client.start("write_report", { ...REPORT, seconds: 600 });
    await until(
      "a running task",
      () => task.status(),
      ({ status }) => status === "working",
    );
    await task.cancel();
    const { status } = await task.end();
    check(client.generation, `is ${status}`, status === "cancelled");
  });
  const stopped = await until(
    "the stops",
    async () => [...(await stage.cloud.executions())].filter(([name]) => !before.has(name)),
    (executions) => executions.every(([, status]) => status !== "RUNNING"),
  );
  const words = stopped.map(([, status]) => status);
  check("engine", `the executions are ${words.join(", ")}`, words.join() === "ABORTED,ABORTED,ABORTED");
}

/** A client that repeats its call after a lost connection gets the task that it has. */
export async function repeatsStartNothingNew(stage: Stage): Promise<void> {
  const count = async () => (await stage.cloud.executions()).size;
  // Each call in a session of its own: the one before has lost its connection.
  const [first = [], second = [], third = []] = [
    await stage.clients(),
    await stage.clients(),
    await stage.clients(),
  ];
  for (const [index, { generation }] of first.entries()) {
    const key = `key of ${generation}`;
    // In the draft, whoever makes the ids repeats a call under the same one.
    const start = async (clients: readonly TaskClient[]) =>
      (clients[index] as TaskClient).start(
        "write_report",
        { ...REPORT, seconds: 1 },
        { idempotencyKey: key, taskId: key },
      );
    const before = await count();
    await start(first);
    const running = await start(second);
    await running.end();
    const ended = await start(third);
    const chapters = chaptersOf((await ended.end()).result);
    const started = (await count()) - before;
    const what = `called three times with one key: ${started} execution`;
    check(generation, what, started === 1 && chapters === REPORT.chapters.length);
  }
  await Promise.all([...first, ...second, ...third].map((client) => client.close()));
}

/** Many at once, each with its own result. */
export async function crowdsAreServed(stage: Stage): Promise<void> {
  const before = (await stage.cloud.executions()).size;
  const clients = await stage.clients();
  const topics = Array.from({ length: 25 }, (_, index) => `topic ${index}`);
  const tasks = await Promise.all(
    topics.map((topic, index) => {
      const client = clients[index % clients.length] as TaskClient;
      return client.start("write_report", { topic, chapters: ["Only one"], seconds: 1 });
    }),
  );
  const endings = await Promise.all(tasks.map((task) => task.end()));
  const told = endings.map(({ result }) => result?.structuredContent?.["topic"]);
  check("all", "25 tasks at once, each with its own result", told.join() === topics.join());
  const started = (await stage.cloud.executions()).size - before;
  check("engine", `${started} executions for 25 tasks`, started === 25);
  await Promise.all(clients.map((client) => client.close()));
}

/** A client that knows no tasks gets progress and the result of one ordinary call, or a handle with the question. */
export async function plainClientsAreServed(stage: Stage): Promise<void> {
  const client = await PlainClient.connect(stage.url);
  tell("plain", `sees ${(await client.tools()).join(", ")}`);
  let progress = 0;
  const report = await client.call("write_report", { ...REPORT, seconds: 1 }, (message) => {
    progress += 1;
    if (message !== "") tell("plain", `progress: ${message}`);
  });
  check(
    "plain",
    "got progress and the result of one ordinary call",
    progress > 0 && chaptersOf(report) === 3,
  );

  // It waits for an answer inline, as nobody can be asked, and gets a handle.
  const asked = await client.call("deploy", { service: "ferry", version: "4.0.0" });
  const { task } = asked.structuredContent as { task: { taskId: string } };
  tell("plain", "cannot be asked, so it got a handle with the question in words");
  await client.call("task_answer", { taskId: task.taskId, content: { environment: "production" } });
  const end = await client.call("task_status", { taskId: task.taskId, waitSeconds: 30 });
  check("plain", "answered with a companion tool", textOf(end).includes("production"));
  await client.close();
}
