// A command that does what the contract tests tell it: one instruction per file in `$CONTROL/<key>/`, in order.
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";

const { CONTROL, TASKFERRY_KEY, TASKFERRY_QUESTIONS, TASKFERRY_PROGRESS } = process.env;
let asked = 0;
const inbox = path.join(CONTROL, TASKFERRY_KEY);

const instructions = {
  finish: ({ value }) => {
    process.stdout.write(JSON.stringify(value));
    process.exitCode = 0;
    return "end";
  },
  fail: ({ code, message }) => {
    process.stderr.write(`${code}: ${message}\n`);
    process.exitCode = 1;
    return "end";
  },
  progress: ({ done, total }) => writeFileSync(TASKFERRY_PROGRESS, `${done}/${total}\n`),
  log: ({ line }) => process.stderr.write(`${line}\n`),
  ask: () => {
    const schema = { type: "object", properties: { note: { type: "string" } } };
    writeFileSync(
      path.join(TASKFERRY_QUESTIONS, `note-${asked++}.json`),
      JSON.stringify({ message: "Which note?", schema }),
    );
  },
  ignoreStop: () => process.on("SIGTERM", () => {}),
};

for (let next = 0; ; ) {
  const names = existsSync(inbox)
    ? readdirSync(inbox)
        .filter((name) => name.endsWith(".json"))
        .sort()
    : [];
  if (names.length === next) {
    await delay(10);
    continue;
  }
  const { act, ...details } = JSON.parse(readFileSync(path.join(inbox, names[next++]), "utf8"));
  if (instructions[act](details) === "end") break;
  writeFileSync(path.join(inbox, `${names[next - 1]}.done`), "");
}
