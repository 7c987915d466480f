/** The published kit, on real processes: the command does what its control directory tells it. */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import type { Answer, JsonObject } from "@taskferry/core";
import { type DrivenRun, testAdapter } from "@taskferry/testkit";
import { localProcess } from "../src/index.js";
import { eventually, killRunsIn } from "./harness.js";

interface Engine {
  readonly stateDir: string;
  readonly control: string;
}

const SECRET = "token-5d1f0c";

/** Leaves an instruction for the command, whole or not at all, and waits until it was heeded. */
async function tell(engine: Engine, run: DrivenRun, instruction: JsonObject, heeded = true): Promise<void> {
  const inbox = path.join(engine.control, run.key);
  mkdirSync(inbox, { recursive: true });
  const count = readdirSync(inbox).filter((name) => name.endsWith(".json")).length;
  const file = path.join(inbox, `${String(count).padStart(4, "0")}.json`);
  writeFileSync(`${file}.draft`, JSON.stringify(instruction));
  renameSync(`${file}.draft`, file);
  if (heeded) await eventually(() => readFileSync(`${file}.done`));
}

const inRun = (engine: Engine, run: DrivenRun, ...names: string[]) =>
  path.join(engine.stateDir, run.key, ...names);

testAdapter<Engine>({
  name: "the adapter contract, by local processes",
  create: async () => {
    const root = await mkdtemp(path.join(os.tmpdir(), "taskferry-process-"));
    const engine: Engine = { stateDir: path.join(root, "state"), control: path.join(root, "control") };
    mkdirSync(engine.control);
    return {
      engine,
      connect: () =>
        localProcess({
          command: [process.execPath, fileURLToPath(new URL("./driven.mjs", import.meta.url))],
          input: "stdin",
          env: { CONTROL: engine.control, TOKEN: SECRET },
          stateDir: engine.stateDir,
          graceMs: 5000,
        }),
      close: async () => {
        if (existsSync(engine.stateDir)) killRunsIn(engine.stateDir);
        await eventually(() => rm(root, { recursive: true, force: true }));
      },
    };
  },
  drive: {
    runs: ({ stateDir }) =>
      existsSync(stateDir) ? readdirSync(stateDir).filter((name) => !name.startsWith(".")).length : 0,
    inputOf: (engine, run) =>
      JSON.parse(readFileSync(inRun(engine, run, "input.json"), "utf8")) as JsonObject,
    secrets: () => [SECRET],
    finish: (engine, run, value) => tell(engine, run, { act: "finish", value }, false),
    fail: (engine, run, failure) => tell(engine, run, { act: "fail", ...failure }, false),
    progress: (engine, run, done, total) => tell(engine, run, { act: "progress", done, total }),
    log: (engine, run, line) => tell(engine, run, { act: "log", line }),
    vanish: (engine, run) => {
      killRunsIn(engine.stateDir);
      // A process that is still dying may write once more.
      return eventually(() => rm(inRun(engine, run), { recursive: true, force: true }));
    },
    deferStop: (engine, run) => tell(engine, run, { act: "ignoreStop" }),
    ask: (engine, run) => tell(engine, run, { act: "ask" }),
    withdraw: (engine, run) => {
      for (const name of readdirSync(inRun(engine, run, "questions")))
        rmSync(inRun(engine, run, "questions", name));
    },
    answers: (engine, run) =>
      readdirSync(inRun(engine, run, "answers"))
        .sort()
        .map((name) => {
          const { action, content } = JSON.parse(
            readFileSync(inRun(engine, run, "answers", name), "utf8"),
          ) as Answer;
          return { accepted: action === "accept", ...(content && { content }) };
        }),
    reject: ({ stateDir }) => writeFileSync(stateDir, "a file in its place"),
  },
  skip: [
    {
      id: "race.end-wins",
      reason: "Exit status 0 after SIGTERM is how a command says that it stopped in good order",
    },
    { drive: "maxInputBytes", reason: "The input is a file: only the disk limits it" },
    { drive: "queue", reason: "A command starts at once" },
    { drive: "unknownWord", reason: "The words are written by this package's own supervisor" },
    { drive: "revive", reason: "A run directory is never used again" },
    { drive: "throttle", reason: "There is no remote side that could throttle" },
    { drive: "disconnect", reason: "There is no connection" },
    { drive: "hang", reason: "There is no remote side that could hang" },
    {
      drive: "loseStartResponse",
      reason: "There is no response to lose: crash.test.ts kills the starter instead",
    },
    { drive: "omitStartId", reason: "The start key is the id" },
  ],
});
