/**
 * The workflows that the tests of clients and processes serve: JavaScript, since servers that are killed run in
 * processes of their own, on the built packages. Whatever a test wants to hold back, it holds back by a file.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { defineWorkflow } from "@taskferry/core";
import { asyncFunction, CallRefused } from "@taskferry/function";
import { localProcess } from "@taskferry/process";
import { z } from "zod";
import { fileEngine } from "./file-engine.mjs";

/** Resolves once the file is there. */
export async function fileAppears(path, signal) {
  while (!existsSync(path)) await pause(5, undefined, { signal });
}

const gate = z.object({ gate: z.string() });
const name = { message: "Who is there?", schema: z.object({ name: z.string() }) };

/** @param home a folder of the test: runs, logs of native calls and gates live in it */
export function fixtureWorkflows(home) {
  const workflow = (options) => defineWorkflow({ pollMs: 20, ...options });
  return [
    workflow({
      name: "echo",
      description: "Says the same again",
      input: z.object({ text: z.string() }),
      output: z.object({ text: z.string() }),
      adapter: asyncFunction(async ({ text }) => ({ text })),
    }),
    workflow({
      name: "gated",
      description: "Ends when a file appears, or badly when its name says so",
      input: z.object({ gate: z.string(), fail: z.boolean().optional() }),
      output: z.object({ opened: z.string() }),
      adapter: asyncFunction(async (input, { signal, progress }) => {
        progress(1, 3, "one of three");
        await fileAppears(`${input.gate}.1`, signal);
        progress(2, 3, "two of three");
        await fileAppears(input.gate, signal);
        if (input.fail) throw new RangeError("the gate was rotten");
        return { opened: "yes" };
      }),
    }),
    workflow({
      name: "waits",
      description: "Ends when a file appears",
      input: gate,
      adapter: asyncFunction(async (input, { signal }) => {
        await fileAppears(input.gate, signal);
        return "through";
      }),
    }),
    workflow({
      name: "stops_with_its_caller",
      input: gate,
      onAbandon: "stop",
      adapter: asyncFunction((input, { signal }) => fileAppears(input.gate, signal)),
    }),
    workflow({
      name: "fails",
      output: z.object({ never: z.string() }),
      adapter: asyncFunction(async () => {
        throw new TypeError("it went wrong");
      }),
    }),
    workflow({
      name: "refuses",
      adapter: asyncFunction(async () => {
        throw new CallRefused("there is no such thing here");
      }),
    }),
    workflow({
      name: "greets",
      description: "Asks for a name while it works",
      adapter: asyncFunction(async (_input, { ask }) => {
        const answer = await ask(name);
        return answer.action === "accept" ? `Hello, ${answer.content.name}` : `No name (${answer.action})`;
      }),
    }),
    workflow({
      name: "surveys",
      description: "Asks two things at once",
      adapter: asyncFunction(async (_input, { ask }) => {
        const [who, where] = await Promise.all([
          ask(name),
          ask({ message: "Where?", schema: z.object({ place: z.string() }) }),
        ]);
        return `${who.content?.name} in ${where.content?.place}`;
      }),
    }),
    workflow({
      name: "asks_first",
      description: "Asks for a target before anything is started",
      before: ({ answers }) => {
        const { target } = answers;
        const schema = { type: "object", properties: { to: { type: "string" } }, required: ["to"] };
        if (target === undefined) return { ask: [{ key: "target", message: "Where to?", schema }] };
        if (target.action !== "accept") return { refuse: "Then not." };
        return { proceed: true, arguments: { to: target.content.to } };
      },
      adapter: asyncFunction(async ({ to }) => `Went to ${to}`),
    }),
    workflow({ name: "only_as_task", task: "required", adapter: asyncFunction(async () => "done") }),
    workflow({ name: "never_as_task", task: "forbidden", adapter: asyncFunction(async () => "done") }),
    workflow({
      name: "at_engine",
      description: "Runs at an engine made of files, which counts every call",
      pollMs: 100,
      input: z.object({ label: z.string() }),
      adapter: fileEngine({ dir: join(home, "engine"), startsOnce: true }),
    }),
    workflow({
      name: "at_searchable_engine",
      input: z.object({ label: z.string() }),
      adapter: fileEngine({ dir: join(home, "searchable"), find: true }),
    }),
    workflow({
      name: "at_forgetful_engine",
      input: z.object({ label: z.string() }),
      adapter: fileEngine({ dir: join(home, "forgetful") }),
    }),
    workflow({
      name: "command",
      description: "A real command: notes that it runs, then waits for a file",
      input: gate.extend({ log: z.string() }),
      adapter: localProcess({
        command: ["sh", "-c", COMMAND, "command", "{{gate}}", "{{log}}"],
        stateDir: join(home, "runs"),
      }),
    }),
  ];
}

const COMMAND = `echo "pid $$" >> "$2"; echo begun; while [ ! -e "$1" ]; do sleep 0.05; done; echo '{"ended":true}' > "$1.out"; echo "all done"`;
