/**
 * The helper behind `$TASKFERRY_ASK`: asks one question, waits for the answer, prints it.
 * The same can be done by hand with the two directories: see the README.
 */
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";

const USAGE = `usage: "$TASKFERRY_ASK" [--key KEY] [--schema JSON] MESSAGE
Prints the answer as JSON. Exit status: 0 accepted, 1 declined, 2 cancelled, 64 wrong usage.`;
const EXIT = { accept: 0, decline: 1, cancel: 2 } as const;
const POLL_MS = 200;

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { key: { type: "string" }, schema: { type: "string" }, help: { type: "boolean", short: "h" } },
  });
  const message = positionals[0];
  const questions = process.env["TASKFERRY_QUESTIONS"];
  const answers = process.env["TASKFERRY_ANSWERS"];
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  if (message === undefined || positionals.length > 1) throw new Error("one MESSAGE is needed");
  if (questions === undefined || answers === undefined) throw new Error("this is no run of Taskferry");
  const key = values.key ?? randomBytes(8).toString("hex");
  if (!/^[A-Za-z0-9_-]{1,100}$/.test(key))
    throw new Error("KEY may hold letters, digits, - and _, at most 100");
  const schema: unknown = values.schema === undefined ? undefined : JSON.parse(values.schema);

  const question = path.join(questions, `${key}.json`);
  const answer = path.join(answers, `${key}.json`);
  // Killed while it waits, it takes the question back: nobody would hear the answer.
  for (const [name, number] of [
    ["SIGTERM", 15],
    ["SIGINT", 2],
    ["SIGHUP", 1],
  ] as const) {
    process.once(name, () => {
      if (!existsSync(answer)) rmSync(question, { force: true });
      process.exit(128 + number);
    });
  }
  const draft = path.join(questions, `.${key}.${process.pid}`);
  writeFileSync(draft, JSON.stringify({ message, schema }));
  renameSync(draft, question);
  while (!existsSync(answer)) await delay(POLL_MS);

  const { action, content } = JSON.parse(readFileSync(answer, "utf8")) as {
    action: keyof typeof EXIT;
    content?: unknown;
  };
  if (action === "accept") console.log(JSON.stringify(content ?? {}));
  return EXIT[action];
}

main().then(
  (status) => {
    process.exitCode = status;
  },
  (error: unknown) => {
    console.error(`${error instanceof Error ? error.message : String(error)}\n${USAGE}`);
    process.exitCode = 64;
  },
);
