/** `tasks/get` over HTTP: Taskferry, a bare SDK server that answers from a Map, and a bare node:http handler. */
import { startChild } from "./child.js";
import { load, pollRequest } from "./load.js";
import { perSecond, report } from "./table.js";

export async function benchHttp(forMs: number): Promise<void> {
  const kinds = ["taskferry", "sdk", "node"];
  const servers = await Promise.all(kinds.map((kind) => startChild(kind)));
  const rates: Record<string, number> = {};
  // In turns, so that a slow moment of the machine meets all; the first turn only warms up.
  const rounds = 4;
  for (let round = 0; round < rounds; round++) {
    for (const [i, server] of servers.entries()) {
      const request = pollRequest(server.port, server.ids[0] ?? "");
      const answered = await load(server.port, () => request, { connections: 16, forMs: forMs / rounds });
      const kind = kinds[i] as string;
      if (round > 0) rates[kind] = (rates[kind] ?? 0) + answered.perSecond / (rounds - 1);
    }
  }
  for (const server of servers) await server.stop();
  const { taskferry = 0, sdk = 1, node = 1 } = rates;
  report({
    what: "HTTP tasks/get",
    value: perSecond(taskferry),
    baseline: `${perSecond(sdk)} bare SDK server on a Map`,
    ratio: taskferry / sdk,
    aim: { atLeast: 3 },
  });
  report({
    what: "HTTP tasks/get",
    value: perSecond(taskferry),
    baseline: `${perSecond(node)} bare node:http, same JSON`,
    ratio: taskferry / node,
    aim: { atLeast: 0.5 },
  });
}

/** Many clients on many running tasks: what the engine hears of it, and what the clients wait. */
export async function benchPolling(clients: number, tasks: number, forMs: number): Promise<void> {
  const pollMs = 1_000;
  const empty = await startChild("taskferry", "1", String(pollMs));
  const emptyMemory = (await empty.ask()).memory;
  await empty.stop();
  const server = await startChild("taskferry", String(tasks), String(pollMs));
  const before = await server.ask();
  const request = (i: number) => pollRequest(server.port, server.ids[i % tasks] ?? "");
  const started = performance.now();
  const { perSecond: rate, p50Ms, p99Ms } = await load(server.port, request, { connections: clients, forMs });
  const intervals = (performance.now() - started) / pollMs;
  const after = await server.ask();
  await server.stop();
  const reads = (after.reads - before.reads) / tasks / intervals;
  const what = `${clients.toLocaleString("en-US")} clients polling ${tasks.toLocaleString("en-US")} running tasks`;
  report({
    what: `${what}: native reads per task and interval`,
    value: reads.toFixed(2),
    ratio: reads,
    aim: { atMost: 1.1 },
  });
  report({
    what: `${what}: answers`,
    value: `${perSecond(rate)}, p50 ${p50Ms.toFixed(0)} ms, p99 ${p99Ms.toFixed(0)} ms`,
  });
  report({
    what: "memory per running task",
    value: `${Math.max(0, (before.memory - emptyMemory) / tasks / 1024).toFixed(1)} KiB`,
  });
}
