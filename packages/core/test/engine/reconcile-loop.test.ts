/** Promises 3 to 5: stops that are owed, reads that fail, ends that stay. */
import { expect, test, vi } from "vitest";
import { LOCAL_OWNER } from "../../src/index.js";
import { statusMessage } from "../../src/wire/codec.js";
import { DONE, type Scripted, STOPPED, scripted, WORKING } from "./scripted.js";

const until = (world: Scripted, good: (task: Awaited<ReturnType<Scripted["get"]>>) => boolean) =>
  vi.waitUntil(
    async () => {
      const task = await world.get("task");
      return good(task) ? task : undefined;
    },
    { timeout: 8_000, interval: 5 },
  );

test("a stop is sent again until the run has ended, and the cancelled task stays cancelled", async () => {
  const world = await scripted({ read: [WORKING, WORKING, WORKING, DONE], stop: ["ambiguous", undefined] });
  await world.create();
  const { task } = await world.engine.cancel(LOCAL_OWNER, "task", "now");
  expect(task.status).toBe("cancelled");
  const confirmed = await until(world, ({ cancelConfirmedAt }) => cancelConfirmedAt !== null);
  expect(confirmed).toMatchObject({ status: "cancelled", outcome: { kind: "cancelled" }, dueAt: null });
  expect(world.calls.filter((call) => call.startsWith("stop"))[0]).toBe("stop 0");
});

test("a cooperative cancel waits for the engine's word", async () => {
  const world = await scripted({ read: [WORKING, STOPPED], stop: [undefined] });
  await world.create();
  await until(world, ({ status }) => status === "working");
  const { task } = await world.engine.cancel(LOCAL_OWNER, "task", "cooperative");
  expect(task.status).toBe("working");
  expect(await until(world, ({ status }) => status === "cancelled")).toMatchObject({
    outcome: { kind: "cancelled" },
  });
});

test("… and tells the true end if the run was faster", async () => {
  const world = await scripted({ read: [WORKING, DONE], stop: [undefined] });
  await world.create();
  await until(world, ({ status }) => status === "working");
  await world.engine.cancel(LOCAL_OWNER, "task", "cooperative");
  expect(await until(world, ({ endedAt }) => endedAt !== null)).toMatchObject({ status: "completed" });
});

test("a run that cannot be read is answered from the row, with since when", async () => {
  const world = await scripted({ read: [{ ...WORKING, message: "step 1" }, "ambiguous"] });
  await world.create();
  await until(world, ({ failingSince }) => failingSince !== null);
  const view = await world.engine.get(LOCAL_OWNER, "task");
  expect(view.task.status).toBe("working");
  expect(statusMessage(view)).toMatch(/^step 1 \(scripted cannot be read since \d{4}-/);
});

test("a refused read, too: credentials may be mended", async () => {
  const world = await scripted({ read: ["rejected", "rejected", DONE] });
  await world.create();
  expect(await until(world, ({ endedAt }) => endedAt !== null)).toMatchObject({
    status: "completed",
    failingSince: null,
  });
});

test("a run that has not appeared yet is waited for, within its time", async () => {
  const world = await scripted({ read: ["gone", "gone", DONE] }, { appearsWithinMs: 60_000 });
  await world.create();
  expect(await until(world, ({ endedAt }) => endedAt !== null)).toMatchObject({ status: "completed" });
});

test("a run that has been seen and is gone is lost", async () => {
  const world = await scripted({ read: [WORKING, "gone"] });
  await world.create();
  expect(await until(world, ({ endedAt }) => endedAt !== null)).toMatchObject({
    status: "failed",
    outcome: { error: { code: "run_lost" } },
  });
});

test("engines go back, tasks do not; a word that nobody knows changes nothing", async () => {
  const world = await scripted({
    read: [
      WORKING,
      { native: "QUEUED", status: "submitted" },
      { native: "PONDERING", status: "unchanged" },
      DONE,
    ],
  });
  await world.create();
  const seen = new Set<string>();
  await until(world, ({ status, native }) => {
    seen.add(`${native}: ${status}`);
    return status === "completed";
  });
  expect([...seen].filter((line) => line.includes("QUEUED") || line.includes("PONDERING"))).not.toContain(
    "QUEUED: submitted",
  );
  for (const line of seen) expect(line).not.toMatch(/(QUEUED|PONDERING): (submitted|completed)/);
});

test("an end stays, whatever the engine says later", async () => {
  const world = await scripted({ read: [DONE, WORKING] });
  await world.create();
  const first = await until(world, ({ endedAt }) => endedAt !== null);
  const reads = world.calls.length;
  for (let i = 0; i < 5; i++) expect(await world.get("task")).toEqual(first);
  expect(world.calls).toHaveLength(reads);
});

test("a task that nobody polls ends in its row", async () => {
  const world = await scripted({ read: [WORKING, WORKING, DONE] });
  await world.create();
  await vi.waitUntil(async () => (await world.engine.peek(LOCAL_OWNER, "task")).task.status === "completed", {
    timeout: 8_000,
  });
});

test("an adapter that breaks its contract breaks no server", async () => {
  const nonsense = async () => ({ native: 5, status: "splendid" }) as never;
  const world = await scripted({ read: [nonsense, nonsense, DONE] });
  await world.create();
  expect(await until(world, ({ endedAt }) => endedAt !== null)).toMatchObject({ status: "completed" });
});
