/**
 * An engine made of files, so that several server processes share it and a test can look inside: every call is a line
 * of `calls.log`, every run a folder. A file `hold-start` keeps `start` from returning, `hold-read` keeps `read`.
 */
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

/** @returns an adapter; `startsOnce` and `find` as asked for */
export function fileEngine({ dir, startsOnce = false, find = false }) {
  mkdirSync(join(dir, "runs"), { recursive: true });
  const note = (operation, key) =>
    appendFileSync(join(dir, "calls.log"), `${operation} ${key} ${process.pid} ${Date.now()}\n`);
  const runOf = (key) => join(dir, "runs", key);
  const held = async (what, signal) => {
    while (existsSync(join(dir, what))) await pause(5, undefined, { signal });
  };
  return {
    engine: "files",
    ...(startsOnce && { startsOnce: true }),
    async start({ key, signal }) {
      note("start", key);
      await held("hold-start", signal);
      if (!existsSync(runOf(key))) {
        mkdirSync(runOf(key));
        note("run", key);
      }
      await held("hold-started", signal);
      return { ref: { key }, url: `https://engine.example/${key}` };
    },
    async read({ key }, { signal }) {
      note("read", key);
      await held("hold-read", signal);
      const end = join(runOf(key), "end");
      if (!existsSync(end)) return { native: "RUNNING", status: "working", message: "at it" };
      const status = readFileSync(end, "utf8");
      return { native: status, status, ...(status === "completed" && { output: { value: { key } } }) };
    },
    async stop({ key }) {
      note("stop", key);
      writeFileSync(join(runOf(key), "end"), "cancelled");
    },
    ...(find && {
      async find({ key }) {
        note("find", key);
        return existsSync(runOf(key)) ? { ref: { key } } : undefined;
      },
    }),
  };
}
