/** What the server adds: hints from Pub/Sub, clients that know no tasks, and starts that outlive it. */
import { check, PlainClient, tell, textOf, until, withClients } from "@taskferry/example-stage";
import { CloudFault } from "@taskferry/google-workflows-emulator";
import { trackingOf } from "./results.js";
import type { Stage } from "./stage.js";

const ORDER = { item: "oars", quantity: 1, secondsPerStep: 600 };

/** When Google says that its quota is used up, executions are read a minute apart. A push tells at once. */
export async function pushesWakeClients(stage: Stage): Promise<void> {
  const { google } = stage;
  const { cloud } = google;
  const clients = await stage.clients();
  const orderOf = (generation: string) => `pushed-${generation}`;
  const tasks = await Promise.all(
    clients.map(({ generation }, index) =>
      clients[index]?.start("ship_order", { ...ORDER, orderId: orderOf(generation) }),
    ),
  );
  const asked = cloud.count("getExecution");
  const fault = new CloudFault("RESOURCE_EXHAUSTED", "Quota exceeded", 60);
  cloud.inject("getExecution", { kind: "refuse", fault, times: clients.length });
  await until(
    "the refusals",
    () => Promise.all(tasks.map((task) => task?.status())).then(() => cloud.count("getExecution") - asked),
    (count) => count >= clients.length,
  );
  tell("google", "its quota is used up: it wants to be left alone for a minute");

  google.pushUrl = stage.pushUrl;
  await withClients(clients, async (client) => {
    const { generation } = client;
    const ended = tasks[clients.indexOf(client)]?.end();
    const since = Date.now();
    google.succeed(orderOf(generation));
    const tracking = trackingOf((await ended)?.result);
    const tookMs = Date.now() - since;
    const good = tracking === `TF-${orderOf(generation)}` && tookMs < 10_000;
    check(generation, `woken ${tookMs} ms after the state changed`, good);
  });
  google.pushUrl = undefined;
  const forged = await fetch(stage.pushUrl, {
    method: "POST",
    headers: { authorization: "Bearer forged" },
    body: "{}",
  });
  check("server", `answers a forged delivery with ${forged.status}`, forged.status === 401);
}

/** A client that knows no tasks gets progress and the result of one ordinary call, or a handle with the question. */
export async function plainClientsAreServed(stage: Stage): Promise<void> {
  const client = await PlainClient.connect(stage.url);
  tell("plain", `sees ${(await client.tools()).join(", ")}`);
  const messages = new Set<string>();
  const order = { ...ORDER, orderId: "plain", secondsPerStep: 1 };
  const shipped = await client.call("ship_order", order, (message) => {
    if (message !== "" && !messages.has(message)) tell("plain", `progress: ${message}`);
    messages.add(message);
  });
  const good = messages.size > 1 && trackingOf(shipped) === "TF-plain";
  check("plain", "got progress and the result of one ordinary call", good);

  // Nobody can be asked through this client, so the call comes back with a handle.
  const asked = await client.call("refund_order", { orderId: "plain", amount: 3 });
  const { task } = asked.structuredContent as { task: { taskId: string } };
  tell("plain", "cannot be asked, so it got a handle with the question in words");
  await client.call("task_answer", { taskId: task.taskId, content: { reason: "it sank" } });
  const end = await client.call("task_status", { taskId: task.taskId, waitSeconds: 30 });
  check("plain", "answered with a companion tool", textOf(end).includes("it sank"));
  await client.close();
}

/**
 * The server is killed when Google has made its executions and has not said so yet. The next server finds them by the
 * label that they carry, among others of the same workflow.
 */
export async function startsOutliveTheServer(stage: Stage): Promise<void> {
  const { google } = stage;
  const clients = await stage.clients();
  google.cloud.inject("createExecution", { kind: "holdAnswer", times: clients.length });
  const handles = new Map<string, string>();
  const orderOf = (generation: string) => `outlives-${generation}`;
  for (const client of clients) {
    const order = { ...ORDER, orderId: orderOf(client.generation), secondsPerStep: 2 };
    handles.set(client.generation, (await client.start("ship_order", order)).handle);
  }
  const made = clients.flatMap(({ generation }) => google.executionsFor(orderOf(generation)));
  check("google", `has made ${made.length} executions; its answers hang`, made.length === clients.length);
  await stage.killServer();
  await Promise.allSettled(clients.map((client) => client.close()));
  tell("server", "is killed (SIGKILL)");
  await stage.startServer();
  tell("server", "a new one has started on the same data");

  await withClients(await stage.clients(), async (client) => {
    const { generation } = client;
    const task = await client.resume(handles.get(generation) ?? "");
    const seen = await task.status();
    tell(generation, `a new session reads: ${seen.status}${seen.message ? `, ${seen.message}` : ""}`);
    const tracking = trackingOf((await task.end()).result);
    const count = google.executionsFor(orderOf(generation)).length;
    const good = tracking === `TF-${orderOf(generation)}` && count === 1;
    check(generation, `shipped as ${tracking}, by ${count} execution`, good);
  });
}
