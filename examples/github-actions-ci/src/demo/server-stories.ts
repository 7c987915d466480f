/** What the server adds: hints from webhooks, clients that know no tasks, and runs that outlive it. */
import { check, PlainClient, tell, textOf, until, withClients } from "@taskferry/example-stage";
import { runOf } from "./results.js";
import type { Stage } from "./stage.js";

/** When the budget of requests is nearly used up, runs are read minutes apart. A delivery tells at once. */
export async function webhooksWakeClients(stage: Stage): Promise<void> {
  const { github } = stage;
  const { server } = github;
  const full = server.remaining;
  server.remaining = 40;
  await withClients(await stage.clients(), async (client) => {
    const { generation } = client;
    const pattern = `pushed to ${generation}`;
    const task = await client.start("run_ci", { pattern });
    const run = github.runWith({ pattern });
    await github.begin(run);
    await until(
      "a running task",
      () => task.status(),
      ({ status }) => status === "working",
    );
    const ended = task.end();
    const since = Date.now();
    await github.succeed(run);
    const { conclusion } = runOf((await ended).result);
    const tookMs = Date.now() - since;
    check(generation, `woken ${tookMs} ms after the delivery`, conclusion === "success" && tookMs < 10_000);
  });
  server.remaining = full;
  const forged = await fetch(stage.webhookUrl, {
    method: "POST",
    headers: { "x-github-event": "workflow_run", "x-hub-signature-256": `sha256=${"0".repeat(64)}` },
    body: "{}",
  });
  check("server", `answers a forged delivery with ${forged.status}`, forged.status === 401);
}

/** A client that knows no tasks gets progress and the result of one ordinary call, or a handle with the question. */
export async function plainClientsAreServed(stage: Stage): Promise<void> {
  const { github } = stage;
  // This story goes by polling alone.
  github.webhookUrl = undefined;
  const client = await PlainClient.connect(stage.url);
  tell("plain", `sees ${(await client.tools()).join(", ")}`);

  const messages: string[] = [];
  const call = client.call("run_ci", { pattern: "plain" }, (message) => {
    if (message !== "" && messages.at(-1) !== message) tell("plain", `progress: ${message}`);
    messages.push(message);
  });
  await until("the dispatch", async () => isDispatched(stage, { pattern: "plain" }), Boolean);
  const run = github.runWith({ pattern: "plain" });
  await github.begin(run);
  await until("progress", async () => messages.some((message) => message.includes("running")), Boolean);
  await github.succeed(run);
  const { conclusion } = runOf(await call);
  check("plain", "got progress and the result of one ordinary call", conclusion === "success");

  // Nobody can be asked through this client, so the call comes back with a handle.
  const environment = "production-plain";
  const asking = client.call("deploy", { environment });
  await until("the dispatch", async () => isDispatched(stage, { environment }), Boolean);
  const deployment = github.runWith({ environment });
  await github.waitForReview(deployment, environment);
  const { task } = (await asking).structuredContent as { task: { taskId: string } };
  tell("plain", "cannot be asked, so it got a handle with the question in words");
  await client.call("task_answer", { taskId: task.taskId, content: { decision: "approve" } });
  await until(
    "the review",
    async () => deployment.reviews.length,
    (count) => count > 0,
  );
  await github.goOn(deployment);
  const end = await client.call("task_status", { taskId: task.taskId, waitSeconds: 30 });
  check("plain", "approved with a companion tool", textOf(end).includes("success"));
  await client.close();
  github.webhookUrl = stage.webhookUrl;
}

/**
 * The server is killed when its dispatches have left and nobody has told it which runs they made. The next server finds
 * the runs, although they appear late and somebody else has run the same workflow on the same branch.
 */
export async function runsOutliveTheServer(stage: Stage): Promise<void> {
  const { github } = stage;
  const { server } = github;
  const before = github.posts(/dispatches$/);
  server.state.hideNewRuns = true;
  server.fault({ on: /dispatches$/, does: "hang", times: 3 });
  const handles = new Map<string, string>();
  const clients = await stage.clients();
  for (const client of clients) {
    const pattern = `outlives ${client.generation}`;
    handles.set(client.generation, (await client.start("run_ci", { pattern })).handle);
  }
  tell("github", "has taken three dispatches; its answers hang, and no list shows the runs yet");
  await stage.killServer();
  await Promise.allSettled(clients.map((client) => client.close()));
  tell("server", "is killed (SIGKILL)");
  server.state.hideNewRuns = false;
  const foreign = github.pressRunWorkflow("main");
  await stage.startServer();
  tell("server", `a new one has started on the same data; meanwhile somebody made run ${foreign.id}`);

  await withClients(await stage.clients(), async (client) => {
    const { generation } = client;
    const task = await client.resume(handles.get(generation) ?? "");
    const seen = await task.status();
    tell(generation, `a new session reads: ${seen.status}${seen.message ? `, ${seen.message}` : ""}`);
    const run = github.runWith({ pattern: `outlives ${generation}` });
    server.state.reveal(run);
    await github.begin(run);
    await github.succeed(run);
    const { runId, conclusion } = runOf((await task.end()).result);
    check(generation, `ends with its own run: ${runId}, ${conclusion}`, runId === String(run.id));
  });
  const sent = github.posts(/dispatches$/) - before;
  check("github", `${sent} dispatches for 3 tasks`, sent === 3);
}

function isDispatched({ github }: Stage, inputs: Record<string, string>): boolean {
  const [[name = "", value] = []] = Object.entries(inputs);
  return github.runs.some((run) => run.inputs[name] === value);
}
