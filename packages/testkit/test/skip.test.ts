import { describe, expect, it } from "vitest";
import { ScriptedEngine } from "../mutants/engine.js";
import { scriptedDrive, scriptedSubject } from "../mutants/subject.js";
import {
  checkAdapter,
  checkRequirement,
  checkSkips,
  type Drive,
  REQUIREMENTS,
  type Skip,
} from "../src/index.js";

type Mutate = Parameters<typeof scriptedSubject>[1];

function check(id: string, drive: Drive<ScriptedEngine>, skip: readonly Skip[], mutate?: Mutate) {
  const requirement = REQUIREMENTS.find((candidate) => candidate.id === id) ?? expect.fail(id);
  return checkRequirement(requirement, {
    create: () => scriptedSubject(new ScriptedEngine(), mutate),
    drive,
    skip,
    patienceMs: 100,
    timeoutMs: 1000,
  });
}

const { queue: _, ...driveWithoutQueue } = scriptedDrive;
const withoutFind: Mutate = (right) => ({ ...right, find: undefined as never });
const neverQueued: Mutate = (right) => ({
  read: async (ref, request) => ({ ...(await right.read(ref, request)), status: "working" }),
});

describe("a requirement", () => {
  it("is met, and it is broken with the reason", async () => {
    expect(await check("read.queued", scriptedDrive, [])).toEqual({ id: "read.queued", outcome: "met" });
    expect(await check("read.queued", scriptedDrive, [], neverQueued)).toMatchObject({
      outcome: "broken",
      reason: "waited for submitted, but the run is working (QUEUED)",
    });
  });

  it("is broken when it does not settle", async () => {
    const hangs: Mutate = () => ({ start: () => new Promise(() => {}) });
    expect(await check("start.json", scriptedDrive, [], hangs)).toMatchObject({
      outcome: "broken",
      reason: "Not settled within 1000 ms.",
    });
  });

  it("is broken when the engine cannot be made", async () => {
    const requirement = REQUIREMENTS[0] ?? expect.fail();
    const create = () => Promise.reject(new Error("no engine"));
    expect(await checkRequirement(requirement, { create, drive: {} })).toMatchObject({ reason: "no engine" });
  });

  it("does not apply to an adapter without the part that it is about", async () => {
    expect(await check("find.none", scriptedDrive, [], withoutFind)).toMatchObject({
      outcome: "not applicable",
      reason: "the adapter has no find",
    });
  });

  it("is broken when its situation is missing and nobody says why", async () => {
    const verdict = await check("read.queued", driveWithoutQueue, []);
    expect(verdict).toMatchObject({ outcome: "broken", reason: expect.stringContaining("no queue") });
  });
});

describe("a skip", () => {
  const reason = "It starts at once.";

  it("declares a missing situation, by its name or by the requirement's", async () => {
    for (const skip of [
      { drive: "queue", reason },
      { id: "read.queued", reason },
    ] as const) {
      expect(await check("read.queued", driveWithoutQueue, [skip])).toEqual({
        id: "read.queued",
        outcome: "skipped",
        reason,
      });
    }
  });

  it("has to cover every missing situation", async () => {
    const { log: _log, finish: _finish, ...drive } = scriptedDrive;
    const verdict = await check("logs.whole", drive, [{ drive: "log", reason }]);
    expect(verdict.outcome).toBe("broken");
  });

  it("stands while the requirement is broken", async () => {
    const verdict = await check("read.queued", scriptedDrive, [{ id: "read.queued", reason }], neverQueued);
    expect(verdict).toEqual({ id: "read.queued", outcome: "skipped", reason });
  });

  it("is stale when the requirement is met", async () => {
    const verdict = await check("read.queued", scriptedDrive, [{ id: "read.queued", reason }]);
    expect(verdict).toMatchObject({ outcome: "broken", reason: "Stale skip: the requirement is met." });
  });

  it("is stale when the requirement does not apply", async () => {
    const verdict = await check("find.none", scriptedDrive, [{ id: "find.none", reason }], withoutFind);
    expect(verdict).toMatchObject({ outcome: "broken", reason: expect.stringContaining("Stale skip") });
  });

  it("is wrong when it is unknown, not needed, said twice or not explained", async () => {
    const skips: readonly Skip[] = [
      { id: "read.minds" as "read.active", reason },
      { drive: "moon" as "queue", reason },
      { drive: "finish", reason },
      { drive: "hang", reason: " " },
      { drive: "hang", reason },
      { drive: "log", reason },
    ];
    const { hang: _hang, log: _log, ...drive } = scriptedDrive;
    const create = () => scriptedSubject(new ScriptedEngine(), () => ({ logs: undefined as never }));
    expect(await checkSkips({ create, drive, skip: skips })).toEqual([
      "there is no requirement read.minds",
      "no requirement needs a situation moon",
      "drive finish is skipped, but the drive can force it",
      "drive hang is skipped without a reason",
      "drive hang is skipped twice",
      "drive log is skipped, but nothing that needs it applies to this adapter",
    ]);
    await expect(checkAdapter({ create, drive, skip: skips })).rejects.toThrow("read.minds");
  });
});

describe("requirements", () => {
  it("have ids that are used once and begin with their behaviour", () => {
    expect(new Set(REQUIREMENTS.map(({ id }) => id)).size).toBe(REQUIREMENTS.length);
    for (const { id, behaviour } of REQUIREMENTS) expect(id.startsWith(`${behaviour}.`)).toBe(true);
  });

  it("use every situation that a drive can force", () => {
    const needed = new Set(REQUIREMENTS.flatMap((requirement) => requirement.drive));
    expect([...needed].sort()).toEqual(Object.keys(scriptedDrive).sort());
  });
});
