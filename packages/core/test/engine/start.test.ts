/** Promise 2: started once, whatever becomes of the answer. */
import { expect, test, vi } from "vitest";
import { LOCAL_OWNER } from "../../src/index.js";
import { DONE, type Scripted, scripted } from "./scripted.js";

const ended = (world: Scripted, status: string) =>
  vi.waitUntil(async () => ((await world.get("task")).status === status ? world.get("task") : undefined), {
    timeout: 5_000,
    interval: 5,
  });
const starts = ({ calls }: Scripted) => calls.filter((call) => call.startsWith("start"));

test("a start that surely has not happened is tried again until it has", async () => {
  const world = await scripted({ start: ["retry", "retry", { ref: "run" }], read: [DONE] });
  await world.create();
  await ended(world, "completed");
  expect(starts(world)).toEqual(["start", "start again", "start again"]);
});

test("… but not for ever", async () => {
  const world = await scripted({ start: ["retry"] }, {}, { startGiveUpMs: 1 });
  await world.create();
  expect(await ended(world, "failed")).toMatchObject({
    outcome: { error: { code: "engine_unavailable", message: "scripted retry" } },
  });
});

test("a start that the engine refuses fails the task, in the engine's words", async () => {
  const world = await scripted({ start: ["rejected"] });
  const { task } = await world.create();
  expect(task).toMatchObject({
    status: "failed",
    outcome: { error: { code: "engine_rejected", message: "scripted rejected" } },
  });
  expect(starts(world)).toHaveLength(1);
});

test("an engine that starts once is asked again", async () => {
  const world = await scripted({ start: ["ambiguous", { ref: "run" }], read: [DONE] }, { startsOnce: true });
  await world.create();
  await ended(world, "completed");
  expect(starts(world)).toEqual(["start", "start again"]);
});

test("an engine that can search is searched, and nothing is started again", async () => {
  const world = await scripted({ start: ["ambiguous"], find: [{ ref: "found" }], read: [DONE] });
  await world.create();
  expect(await ended(world, "completed")).toMatchObject({ runRef: "found" });
  expect(starts(world)).toEqual(["start"]);
});

test("only when there is surely no run is it started again", async () => {
  const world = await scripted({
    start: ["ambiguous", { ref: "second" }],
    find: ["retry", "ambiguous", undefined as never],
    read: [DONE],
  });
  await world.create();
  expect(await ended(world, "completed")).toMatchObject({ runRef: "second" });
  expect(world.calls.filter((call) => call !== "read")).toEqual([
    "start",
    "find",
    "find",
    "find",
    "start again",
  ]);
});

test("a search that never comes to an end is given up, counted from the last start, and says where to look", async () => {
  const consoleUrl = "https://engine.example/runs";
  const world = await scripted(
    { start: ["ambiguous"], find: ["retry"] },
    { consoleUrl },
    { findGiveUpMs: 1 },
  );
  await world.create();
  const task = await ended(world, "failed");
  expect(task.outcome).toMatchObject({ error: { code: "start_outcome_unknown" } });
  expect(JSON.stringify(task.outcome)).toContain(consoleUrl);
  expect(starts(world)).toHaveLength(1);
});

test("an engine that can tell nothing is not asked twice", async () => {
  const world = await scripted({ start: ["ambiguous"] });
  await world.create();
  expect(await ended(world, "failed")).toMatchObject({
    outcome: { error: { code: "start_outcome_unknown" } },
  });
  expect(starts(world)).toHaveLength(1);
});

test("a start that hangs is cut off at its deadline, and then resolved like any lost answer", async () => {
  const hang = () => new Promise<never>(() => {});
  const world = await scripted(
    { start: [hang], find: [{ ref: "found" }], read: [DONE] },
    { startTimeoutMs: 100 },
  );
  const { task } = await world.create();
  expect(task.status).toBe("submitted");
  expect(await ended(world, "completed")).toMatchObject({ runRef: "found" });
});

test("cancelled while its start hangs: the run is stopped as soon as it is known", async () => {
  let begin: (run: { ref: string }) => void = () => {};
  const world = await scripted({
    start: [() => new Promise((resolve) => (begin = resolve))],
    stop: [undefined],
    read: [{ native: "STOPPED", status: "cancelled" }],
  });
  await world.create();
  const { task } = await world.engine.cancel(LOCAL_OWNER, "task", "now");
  expect(task).toMatchObject({ status: "cancelled", cancelConfirmedAt: null });
  begin({ ref: "late" });
  await vi.waitUntil(async () => (await world.get("task")).cancelConfirmedAt !== null, { timeout: 5_000 });
  expect(world.calls).toEqual(["start", "stop 0", "read"]);
});

test("cancelled before a deferred start is tried again: it is never started", async () => {
  const world = await scripted({ start: ["retry"] });
  await world.create();
  const { task } = await world.engine.cancel(LOCAL_OWNER, "task", "cooperative");
  expect(task).toMatchObject({ status: "cancelled", startPhase: "none" });
  const before = starts(world).length;
  expect(await world.get("task")).toMatchObject({ status: "cancelled" });
  expect(starts(world)).toHaveLength(before);
});
