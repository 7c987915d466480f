/**
 * An engine of files that survives every server: a run is a folder, named by its key and the count of starts, so that a
 * second start would be seen. A run asks one question and ends with its answer, or ends when it is stopped.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { EngineError, type WorkflowAdapter } from "@taskferry/core";

/** What an engine can say about a start whose answer was lost. */
export type EngineKind = "starts once" | "find" | "neither";

interface FileRef {
  readonly run: string;
}

export function fileEngine(folder: string, kind: EngineKind): WorkflowAdapter {
  mkdirSync(folder, { recursive: true });
  const runsOf = (key: string) => readdirSync(folder).filter((name) => name.startsWith(`${key}.`));
  const pathOf = (ref: unknown, file: string) => join(folder, (ref as FileRef).run, file);
  const adapter: WorkflowAdapter = {
    engine: "files",
    startsOnce: kind === "starts once",
    consoleUrl: "https://engine.example/runs",
    async start({ key }) {
      const known = runsOf(key);
      const run = kind === "starts once" ? `${key}.0` : `${key}.${known.length}`;
      mkdirSync(join(folder, run), { recursive: kind === "starts once" });
      return { ref: { run } };
    },
    async read(ref) {
      if (existsSync(pathOf(ref, "stopped"))) return { native: "STOPPED", status: "cancelled" };
      const input = existsSync(pathOf(ref, "answer"))
        ? readFileSync(pathOf(ref, "answer"), "utf8")
        : undefined;
      if (input !== undefined)
        return { native: "DONE", status: "completed", output: { value: { answer: input } } };
      return { native: "ASKING", status: "input_required", questions: [{ key: "go", message: "Go on?" }] };
    },
    async stop(ref) {
      writeFileSync(pathOf(ref, "stopped"), "");
    },
    async answer(ref, _key, answer) {
      if (existsSync(pathOf(ref, "answer")))
        throw new EngineError({ kind: "gone", message: "answered already" });
      writeFileSync(pathOf(ref, "answer"), answer.action);
    },
  };
  if (kind !== "find") return adapter;
  return {
    ...adapter,
    async find({ key }) {
      const [run] = runsOf(key);
      return run === undefined ? undefined : { ref: { run } };
    },
  };
}

/** What the engine has seen, for the harness. */
export function runsIn(folder: string): readonly { readonly stopped: boolean; readonly answered: boolean }[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder).map((run) => ({
    stopped: existsSync(join(folder, run, "stopped")),
    answered: existsSync(join(folder, run, "answer")),
  }));
}
