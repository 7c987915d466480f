/** What happens to orders, each story played by real clients of all three generations. */
import { type Answerer, check, tell, textOf, until, withClients } from "@taskferry/example-stage";
import { trackingOf } from "./results.js";
import type { Stage } from "./stage.js";

const ORDER = { item: "paddles", quantity: 2, secondsPerStep: 2 };

/** From the project's backlog over moving steps to the result. */
export async function ordersAreShipped(stage: Stage): Promise<void> {
  const { google } = stage;
  google.cloud.slots = 0;
  const clients = await stage.clients();
  const tasks = await Promise.all(
    clients.map((client) => client.start("ship_order", { ...ORDER, orderId: `order-${client.generation}` })),
  );
  await Promise.all(
    tasks.map(async (task, index) => {
      const generation = clients[index]?.generation ?? "";
      // The founding draft has a status for it and no messages.
      const { status, message = "" } = await until(
        "a queued task",
        () => task.status(),
        (seen) => seen.status === "submitted" || /Queued/.test(seen.message ?? ""),
      );
      tell(generation, `started, and sees: ${status}${message && `, ${message}`}`);
    }),
  );
  const states = clients.map(({ generation }) => google.executionFor(`order-${generation}`).state);
  check("google", `the executions are ${states.join(", ")}`, states.join() === "QUEUED,QUEUED,QUEUED");

  google.cloud.slots = Number.POSITIVE_INFINITY;
  await Promise.all(
    tasks.map(async (task, index) => {
      const generation = clients[index]?.generation ?? "";
      const steps = new Set<string>();
      await until(
        "the last step",
        () => task.status(),
        ({ status, message = "" }) => {
          const step = /^Step (\w+)/.exec(message)?.[1];
          if (step !== undefined && !steps.has(step)) tell(generation, `sees: ${message}`);
          if (step !== undefined) steps.add(step);
          return status !== "submitted" && (generation === "draft" || steps.size >= 2);
        },
      );
      const { result } = await task.end();
      check(generation, `shipped as ${trackingOf(result)}`, trackingOf(result) === `TF-order-${generation}`);
    }),
  );
  await Promise.all(clients.map((client) => client.close()));
}

/** A workflow that raises an error is a result that says which, why and where. */
export async function failuresAreReadable(stage: Stage): Promise<void> {
  await withClients(await stage.clients(), async (client) => {
    const { generation } = client;
    const order = { ...ORDER, orderId: `too-much-${generation}`, quantity: 500 };
    const { status, result } = await (await client.start("ship_order", order)).end();
    tell(generation, `${status}: ${textOf(result).split("\n")[0]}`);
    const says = ["OutOfStock", "Only 100 of paddles are in stock", 'step "refuse"'];
    const told = says.every((words) => textOf(result).includes(words));
    check(generation, "was told the error, its cause and the step", result?.isError === true && told);
  });
}

/** A callback that a step waits for is a question; the answer calls it. */
export async function refundsAreAsked(stage: Stage): Promise<void> {
  const approve =
    (generation: string): Answerer =>
    ({ message }) => {
      tell(generation, `is asked: ${message}`);
      return { action: "accept", content: { reason: `damaged, says ${generation}` } };
    };
  await withClients(await stage.clients(approve), async (client) => {
    const { generation } = client;
    const task = await client.start("refund_order", { orderId: `broken-${generation}`, amount: 12.5 });
    const { refunded, reason } = (await task.end()).result?.structuredContent ?? {};
    check(generation, `refunded: ${reason}`, refunded === true && reason === `damaged, says ${generation}`);
  });
  const decline =
    (generation: string): Answerer =>
    ({ message }) => {
      tell(generation, `declines: ${message}`);
      return { action: "decline" };
    };
  await withClients(await stage.clients(decline), async (client) => {
    const { generation } = client;
    const task = await client.start("refund_order", { orderId: `intact-${generation}`, amount: 99 });
    const { refunded } = (await task.end()).result?.structuredContent ?? {};
    check(generation, "the workflow took its other way", refunded === false);
  });
  const sent = stage.google.cloud.count("sendCallback");
  check("google", `${sent} callbacks were called for 6 questions`, sent === 6);
}

/** A cancelled task cancels the execution, and stays cancelled. */
export async function cancelsReachGoogle(stage: Stage): Promise<void> {
  const { google } = stage;
  await withClients(await stage.clients(), async (client) => {
    const { generation } = client;
    const orderId = `cancelled-${generation}`;
    const task = await client.start("ship_order", { ...ORDER, orderId, secondsPerStep: 600 });
    await until(
      "a running task",
      () => task.status(),
      ({ status }) => status === "working",
    );
    await task.cancel();
    const { status } = await task.end();
    await until(
      "the cancel at Google",
      async () => google.executionFor(orderId).state,
      (state) => state !== "ACTIVE",
    );
    const { state } = google.executionFor(orderId);
    check(
      generation,
      `is ${status}, and its execution ${state}`,
      status === "cancelled" && state === "CANCELLED",
    );
  });
}
