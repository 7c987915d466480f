import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { localProcess } from "../src/index.js";
import { Run, sh, signal, started, temporaryDirectory, verdictOf } from "./harness.js";

const FORM = { type: "object", properties: { title: { type: "string" } }, required: ["title"] };
const ASKED = JSON.stringify({ message: "Which title?", schema: FORM });

/** The ways of the README to ask, each with the form above; what they print is the answer. */
const ASKERS: Record<string, string[]> = {
  "a shell script with the helper": [
    "sh",
    "-c",
    `"$TASKFERRY_ASK" --key title --schema '${JSON.stringify(FORM)}' "Which title?"`,
  ],
  "a shell script by hand": [
    "sh",
    "-c",
    `echo '${ASKED}' > "$TASKFERRY_QUESTIONS/title.json"
    until [ -e "$TASKFERRY_ANSWERS/title.json" ]; do sleep 0.05; done
    sed 's/.*"content":\\({.*}\\)}$/\\1/' "$TASKFERRY_ANSWERS/title.json"`,
  ],
  Python: [
    "python3",
    "-c",
    `
import json, os, pathlib, time
question = pathlib.Path(os.environ["TASKFERRY_QUESTIONS"], "title.json")
answer = pathlib.Path(os.environ["TASKFERRY_ANSWERS"], "title.json")
question.write_text('${ASKED}')
while not answer.exists():
    time.sleep(0.05)
print(json.dumps(json.loads(answer.read_text())["content"]))`,
  ],
  Node: [
    process.execPath,
    "--input-type=module",
    "-e",
    `
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
const { TASKFERRY_QUESTIONS, TASKFERRY_ANSWERS } = process.env;
writeFileSync(TASKFERRY_QUESTIONS + "/title.json", '${ASKED}');
while (!existsSync(TASKFERRY_ANSWERS + "/title.json")) await delay(50);
console.log(JSON.stringify(JSON.parse(readFileSync(TASKFERRY_ANSWERS + "/title.json", "utf8")).content));`,
  ],
};

const hasPython = spawnSync("python3", ["--version"]).status === 0;

describe("a question", () => {
  for (const [name, command] of Object.entries(ASKERS)) {
    it.skipIf(name === "Python" && !hasPython)(`is asked and answered by ${name}`, async () => {
      const run = await started({ command });
      const state = await run.until((now) => expect(now.status).toBe("input_required"));
      expect(state).toMatchObject({
        native: "asking",
        questions: [{ key: "title", message: "Which title?", schema: FORM }],
      });
      await run.answer("title", { title: "É" });
      expect((await run.read()).questions).toBeUndefined();
      expect((await run.untilEnded()).output?.value).toEqual({ title: "É" });
    });
  }

  it("outlives the server: another adapter reads and answers it", async () => {
    const run = await sh('"$TASKFERRY_ASK" Sure?');
    const [question] = (await run.until((now) => expect(now.questions).toHaveLength(1))).questions ?? [];
    const later = new Run(localProcess({ command: ["x"], stateDir: run.stateDir }), run.stateDir, run.key);
    expect((await later.read()).questions).toEqual([question]);
    await later.answer(question?.key as string);
    expect((await later.untilEnded()).output?.value).toEqual({});
  });

  it("may be one of several, answered in any order", async () => {
    const run = await sh('"$TASKFERRY_ASK" --key a A? & "$TASKFERRY_ASK" --key b B? & wait; echo both');
    await run.until((now) => expect(now.questions?.map((question) => question.key)).toEqual(["a", "b"]));
    await run.answer("b");
    expect(await run.read()).toMatchObject({ status: "input_required", questions: [{ key: "a" }] });
    await run.answer("a");
    expect((await run.untilEnded()).message).toBe("both");
  });

  it("gets a new key from the helper each time", async () => {
    const run = await sh('"$TASKFERRY_ASK" Again? && "$TASKFERRY_ASK" Again?');
    const asked = async (not?: string) => {
      const { questions } = await run.until((now) => {
        expect(now.questions).toHaveLength(1);
        expect(now.questions?.[0]?.key).not.toBe(not);
      });
      return questions?.[0]?.key as string;
    };
    const first = await asked();
    await run.answer(first);
    await run.answer(await asked(first));
    expect((await run.untilEnded()).native).toBe("exited 0");
  });

  it.each([
    ["decline", 1],
    ["cancel", 2],
  ] as const)("with the answer %s ends the helper with status %i", async (action, status) => {
    const run = await sh('"$TASKFERRY_ASK" --key q Sure?; echo "status $?"');
    await run.until((now) => expect(now.status).toBe("input_required"));
    await run.adapter.answer?.(run.ref, "q", { action }, { signal });
    expect((await run.untilEnded()).message).toBe(`status ${status}`);
  });

  it("may send the client to a URL", async () => {
    const run = await sh(
      `echo '{"message":"Sign in","url":"https://example.com/"}' > "$TASKFERRY_QUESTIONS/q.json"; sleep 60`,
    );
    const { questions } = await run.until((now) => expect(now.questions).toHaveLength(1));
    expect(questions).toEqual([{ key: "q", message: "Sign in", kind: "url", url: "https://example.com/" }]);
  });

  it("is taken back with its file, and by a helper that is ended", async () => {
    const run = await sh('"$TASKFERRY_ASK" --key q Sure? & echo $!; wait; sleep 60');
    const state = await run.until((now) => {
      expect(now.status).toBe("input_required");
      expect(now.message).toMatch(/^\d+$/);
    });
    process.kill(Number(state.message), "SIGTERM");
    await run.until((now) => expect(now).toMatchObject({ native: "running", status: "working" }));
    expect(await verdictOf(run.answer("q"))).toMatchObject({ kind: "gone" });
  });

  it("that is still being written is not one yet", async () => {
    const run = await sh(
      `printf '{"message":"Su' > "$TASKFERRY_QUESTIONS/q.json"
      until [ -e "$TASKFERRY_ANSWERS/../go" ]; do sleep 0.05; done
      printf 're?"}' >> "$TASKFERRY_QUESTIONS/q.json"; sleep 60`,
    );
    const state = await run.until((now) => expect(now.message).toContain("not JSON"));
    expect(state).toMatchObject({ native: "running", status: "working" });
    writeFileSync(run.file("go"), "");
    await run.until((now) => expect(now.questions).toEqual([{ key: "q", message: "Sure?" }]));
  });

  it.each([
    ["no message", '{"text":"x"}', "q.json", "message"],
    ["no object", '"x"', "q.json", "message"],
    ["a schema that is none", '{"message":"x","schema":"y"}', "q.json", "schema"],
    ["a name that is no key", '{"message":"x"}', "a b.json", "file name"],
  ])("with %s is not asked, and the message says why", async (_, text, name, why) => {
    const run = await sh(`echo '${text}' > "$TASKFERRY_QUESTIONS/${name}"; sleep 60`);
    const state = await run.until((now) => expect(now.message).toContain(why));
    expect(state.status).toBe("working");
  });
});

describe("an answer", () => {
  it("is gone the second time, and the first one stays", async () => {
    const run = await sh(`echo '{"message":"?"}' > "$TASKFERRY_QUESTIONS/q.json"; sleep 60`);
    await run.until((now) => expect(now.status).toBe("input_required"));
    await run.answer("q", { n: 1 });
    expect(await verdictOf(run.answer("q", { n: 1 }))).toMatchObject({ kind: "gone" });
    expect(await verdictOf(run.answer("q", { n: 2 }))).toMatchObject({ kind: "gone" });
    const kept: unknown = JSON.parse(readFileSync(run.file("answers/q.json"), "utf8"));
    expect(kept).toEqual({ action: "accept", content: { n: 1 } });
  });

  it.each(["never-asked", "../../x", "a/b", "", "."])("to %j is gone and writes nothing", async (key) => {
    const run = await sh("echo up; sleep 60");
    await run.untilMessage("up");
    expect(await verdictOf(run.answer(key, {}))).toMatchObject({ kind: "gone" });
    expect(existsSync(path.join(run.stateDir, "x.json"))).toBe(false);
  });

  it("after the end is gone", async () => {
    const run = await sh(`echo '{"message":"?"}' > "$TASKFERRY_QUESTIONS/q.json"`);
    const state = await run.untilEnded();
    expect(state.questions).toBeUndefined();
    expect(await verdictOf(run.answer("q", {}))).toMatchObject({ kind: "gone" });
  });

  it("does not follow a link that the command puts in the way", async () => {
    const outside = await temporaryDirectory();
    const run = await sh(
      `rmdir "$TASKFERRY_ANSWERS"; ln -s "$OUT" "$TASKFERRY_ANSWERS"
      echo '{"message":"?"}' > "$TASKFERRY_QUESTIONS/q.json"; sleep 60`,
      { env: { OUT: outside } },
    );
    await run.until((now) => expect(now.status).toBe("input_required"));
    expect(await verdictOf(run.answer("q", {}))).toMatchObject({ kind: "gone" });
    expect(existsSync(path.join(outside, "q.json"))).toBe(false);
  });
});

describe("the helper", () => {
  it.each([
    ["without a message", '"$TASKFERRY_ASK"'],
    ["with a key that is none", '"$TASKFERRY_ASK" --key ../x Sure?'],
    ["with a schema that is no JSON", '"$TASKFERRY_ASK" --schema "{" Sure?'],
  ])("%s explains itself and exits with 64", async (_, script) => {
    const { failure } = await (await sh(script)).untilEnded();
    expect(failure?.message).toBe("sh exited with status 64");
    expect(failure?.text).toContain("usage:");
  });
});

it("what is no directory of questions, and no file in it, asks nothing", async () => {
  const linked = await sh('rmdir "$TASKFERRY_QUESTIONS"; ln -s / "$TASKFERRY_QUESTIONS"; echo up; sleep 60');
  expect((await linked.untilMessage("up")).status).toBe("working");
  const nested = await sh('mkdir "$TASKFERRY_QUESTIONS/q.json"; echo up; sleep 60');
  const state = await nested.until((now) => expect(now.message).toContain("not JSON"));
  expect(state.status).toBe("working");
});
