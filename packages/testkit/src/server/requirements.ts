import assert from "node:assert/strict";
import type { Generation, JsonObject } from "@taskferry/core";
import type { DriveName } from "../drive.js";
import type { Capability } from "../requirement.js";
import type { ServerStage } from "./stage.js";
import type { Ending } from "./task-client.js";

/** What is played with each generation of clients. */
export type ServerPlay = "completes" | "fails" | "asks" | "cancels" | "restarts";

/** Stable. Tests are named after it and skips name it. */
export type ServerRequirementId = `${Generation}.${ServerPlay}`;

/** One thing that clients of one generation must see of an adapter behind a server, as data. */
export interface ServerRequirement {
  readonly id: ServerRequirementId;
  readonly generation: Generation;
  readonly says: string;
  readonly drive: readonly DriveName[];
  readonly adapter: readonly Capability[];
  /** Plays it. Throws when the client sees something else. */
  check(stage: ServerStage): Promise<void>;
}

/** What the runs of the kit return. */
const VALUE = { answer: 42, list: [true, null, "Ω"] } as const;

interface Play extends Omit<ServerRequirement, "id" | "generation" | "check"> {
  check(stage: ServerStage, generation: Generation): Promise<void>;
}

const PLAYS: Readonly<Record<ServerPlay, Play>> = {
  completes: {
    says: "A task runs to its end, and its result is what the workflow returned",
    drive: ["finish"],
    adapter: [],
    async check(stage, generation) {
      const task = await (await stage.connect(generation)).start();
      const run = await stage.run();
      const ended = watched(task.end());
      await stage.drive.finish?.(run, VALUE);
      assertCompleted(await ended);
      assert.equal(await task.status(), "completed");
    },
  },
  fails: {
    says: "A workflow that fails is a result with `isError`, and 2025-11-25 calls the task failed",
    drive: ["fail"],
    adapter: [],
    async check(stage, generation) {
      const task = await (await stage.connect(generation)).start();
      const run = await stage.run();
      const ended = watched(task.end());
      await stage.drive.fail?.(run, { code: "KitFailure", message: "the kit made it fail" });
      const { status, result, error } = await ended;
      assert.equal(status, generation === "2025-11-25" ? "failed" : "completed");
      assert.equal(result?.["isError"], true, `the result is not an error result: ${error ?? ""}`);
    },
  },
  asks: {
    says: "A question of the run reaches the client, and the client's answer reaches the run",
    drive: ["ask", "answers", "finish"],
    adapter: ["answer"],
    async check(stage, generation) {
      const { drive, asked } = stage;
      const task = await (await stage.connect(generation)).start();
      const run = await stage.run();
      const ended = watched(task.end());
      await drive.ask?.(run);
      // A drive may have nothing to look at before the first answer.
      const given = async () => (await drive.answers?.(run)) ?? [];
      const taken = () =>
        given().then(
          (answers) => answers[0],
          () => undefined,
        );
      const answer = await Promise.race([stage.eventually("the answer", taken), ended.then(endedEarly)]);
      assert.equal(asked.messages.length, 1, "the client was not asked once");
      assert.equal(answer.accepted, true, "the answer did not arrive as accepted");
      await drive.finish?.(run, VALUE);
      assertCompleted(await ended);
      assert.equal((await given()).length, 1, "the run was answered more than once");
    },
  },
  cancels: {
    says: "A cancelled task ends as cancelled, and its native run is stopped",
    drive: [],
    adapter: ["stop"],
    async check(stage, generation) {
      const task = await (await stage.connect(generation)).start();
      const run = await stage.run();
      const ended = watched(task.end());
      await task.cancel();
      assert.equal((await ended).status, "cancelled");
      const { status } = await stage.untilEnded(run);
      assert.equal(status, "cancelled", "the native run");
    },
  },
  restarts: {
    says: "A task outlives its server: the next one on the same database tells its end, and nothing is started twice",
    drive: ["finish"],
    adapter: [],
    async check(stage, generation) {
      const { handle } = await (await stage.connect(generation)).start();
      const run = await stage.run();
      await stage.restart();
      const task = await (await stage.connect(generation)).resume(handle);
      assert.ok(["submitted", "working"].includes(await task.status()), "the task did not go on");
      const ended = watched(task.end());
      await stage.drive.finish?.(run, VALUE);
      assertCompleted(await ended);
      assert.deepEqual(await stage.run(), run, "another run was started");
      if (stage.drive.runs) assert.equal(await stage.drive.runs(), 1, "native runs");
    },
  },
};

const GENERATIONS: readonly Generation[] = ["draft", "2025-11-25", "2026-07-28"];

/** All of them: each play with each generation. */
export const SERVER_REQUIREMENTS: readonly ServerRequirement[] = GENERATIONS.flatMap((generation) =>
  (Object.entries(PLAYS) as [ServerPlay, Play][]).map(([play, { check, ...data }]) => ({
    ...data,
    id: `${generation}.${play}` as const,
    generation,
    check: (stage: ServerStage) => check(stage, generation),
  })),
);

/** Keeps a rejection from counting as unhandled while the play is elsewhere. */
function watched<Value>(promise: Promise<Value>): Promise<Value> {
  promise.catch(() => undefined);
  return promise;
}

function endedEarly({ status, error }: Ending): never {
  throw new assert.AssertionError({
    message: `the task ended as ${status} before it was answered: ${error ?? ""}`,
  });
}

function assertCompleted({ status, result, error }: Ending): void {
  assert.equal(status, "completed", error);
  assert.notEqual(result?.["isError"], true, "the result is an error result");
  assert.deepEqual(result?.["structuredContent"], VALUE as unknown as JsonObject);
}
