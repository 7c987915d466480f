/** Two servers on one PostgreSQL serve the same tasks: what one does, the other tells. */
import { expect, test } from "vitest";
import { postgres } from "../store/databases.js";
import { calls, endRun, open, until } from "../support/server-process.js";
import { session, start2025, textOf } from "../support/sessions.js";
import { Site } from "./replica.js";

const database = postgres();
/** What no test waits for: whoever learns of something learned it from the other process. */
const BOUND = { timeout: 30_000 };

test("made on one, polled on the other, cancelled on the first", BOUND, async () => {
  const site = await Site.on(database);
  const [a, b] = await site.replicas(2);
  const taskId = await a!.start("at_engine", { label: "shared" });
  expect(await b!.get(taskId)).toMatchObject({ taskId, status: "working" });
  await until(async () => expect((await b!.get(taskId)).statusMessage).toBe("at it"));
  await a!.request("tasks/cancel", { taskId });
  await until(async () => expect((await b!.get(taskId)).status).toBe("cancelled"));
  expect((await a!.get(taskId)).status).toBe("cancelled");
  for (const operation of ["start", "run", "stop"])
    expect(calls(site.home, "engine", operation), operation).toHaveLength(1);
});

test("a blocked tasks/result wakes when the other server's function ends", BOUND, async () => {
  const site = await Site.on(database);
  const [a, b] = await site.replicas(2);
  const [maker, waiter] = await Promise.all([session(a!.url), session(b!.url)]);
  const gate = `${site.home}/gate`;
  // It runs in the first server: the second cannot read it, so only the database can tell.
  const taskId = await start2025(maker, "gated", { gate });
  const waiting = waiter.request("tasks/result", { taskId });
  await until(async () => expect(await listeners(site)).toBeGreaterThan(0));
  const opened = performance.now();
  open(gate);
  const { result } = await waiting;
  expect(result.structuredContent).toEqual({ opened: "yes" });
  // An unwoken wait looks at its row every 30 s.
  expect(performance.now() - opened).toBeLessThan(10_000);
});

test("a listen hears of work that the other server does", BOUND, async () => {
  const site = await Site.on(database);
  const [a, b] = await site.replicas(2);
  const gate = `${site.home}/gate`;
  const taskId = await a!.start("gated", { gate });
  const listen = await b!.listen([taskId]);
  open(gate);
  const note = await listen.note(taskId, ({ status }) => status === "completed");
  expect(note.params.result.structuredContent).toEqual({ opened: "yes" });
});

test("a list goes on at the other server", BOUND, async () => {
  const site = await Site.on(database);
  const [a, b] = await site.replicas(2);
  const clients = await Promise.all([session(a!.url), session(b!.url)]);
  const made = await Promise.all(
    Array.from({ length: 60 }, (_, i) => start2025(clients[i % 2]!, "echo", { text: `${i}` })),
  );
  const pages = [];
  let cursor: string | undefined;
  for (let turn = 0; turn === 0 || cursor !== undefined; turn++) {
    const { result } = await clients[turn % 2]!.request("tasks/list", cursor === undefined ? {} : { cursor });
    pages.push(result.tasks.map(({ taskId }: { taskId: string }) => taskId));
    cursor = result.nextCursor;
  }
  expect(pages.map((page) => page.length)).toEqual([50, 10]);
  expect(pages.flat().sort()).toEqual([...made].sort());
  const { error } = await clients[0]!.request("tasks/list", { cursor: `${"x".repeat(20)}.y` });
  expect(error?.code).toBe(-32602);
});

test("a question that one server has stored is answered at the other", BOUND, async () => {
  const site = await Site.on(database);
  const [a, b] = await site.replicas(2);
  const taskId = await a!.start("greets");
  await until(async () => expect((await b!.get(taskId)).status).toBe("input_required"));
  const [key] = Object.keys((await b!.get(taskId)).inputRequests);
  const inputResponses = { [key!]: { action: "accept", content: { name: "Neighbour" } } };
  await b!.request("tasks/update", { taskId, inputResponses });
  await until(async () => expect((await a!.get(taskId)).status).toBe("completed"));
  expect(textOf((await b!.get(taskId)).result)).toContain("Hello, Neighbour");
});

test("polled by both as fast as they can, a run is read once per interval", BOUND, async () => {
  const site = await Site.on(database);
  const [a, b] = await site.replicas(2);
  const taskId = await a!.start("at_engine", { label: "popular" });
  const reads = () => calls(site.home, "engine", "read");
  await until(async () => {
    await Promise.all([a, b, a, b].map((replica) => replica!.get(taskId)));
    expect(new Set(reads().map(({ pid }) => pid)).size).toBe(2);
    expect(reads().length).toBeGreaterThan(8);
  });
  const times = reads().map(({ at }) => at);
  // The interval of 100 ms counts from the end of a read; the first comes with the start.
  for (const [index, at] of times.slice(2).entries())
    expect(at - times[index + 1]!).toBeGreaterThanOrEqual(95);
  const [run] = calls(site.home, "engine", "run");
  endRun(site.home, "engine", run!.key);
  await until(async () => expect((await b!.get(taskId)).status).toBe("completed"));
});

async function listeners(site: Site): Promise<number> {
  return (await site.query("SELECT 1 FROM pg_stat_activity WHERE query LIKE 'LISTEN%'")).length;
}
