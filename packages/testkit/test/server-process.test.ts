/** The server plays, on local processes: a shell script that waits for its end in a file. */
import { existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { localProcess } from "@taskferry/process";
import { type DrivenRun, testServer } from "../src/index.js";

interface Engine {
  readonly root: string;
  readonly control: string;
  readonly stateDir: string;
}

/** Leaves a file for the script, whole or not at all. */
function tell({ control }: Engine, { key }: DrivenRun, what: string, text: string): void {
  writeFileSync(join(control, `.${key}.${what}`), text);
  renameSync(join(control, `.${key}.${what}`), join(control, `${key}.${what}`));
}

function keysOf({ stateDir }: Engine): string[] {
  return existsSync(stateDir) ? readdirSync(stateDir).filter((name) => !name.startsWith(".")) : [];
}

testServer<Engine>({
  name: "local processes behind a server",
  create: async () => {
    const root = await mkdtemp(join(tmpdir(), "taskferry-testkit-process-"));
    const engine = { root, control: join(root, "control"), stateDir: join(root, "state") };
    await mkdir(engine.control);
    return {
      engine,
      connect: () =>
        localProcess({
          command: ["sh", fileURLToPath(new URL("./waiting.sh", import.meta.url))],
          env: { CONTROL: engine.control },
          input: "stdin",
          stateDir: engine.stateDir,
        }),
      close: async () => {
        for (const key of keysOf(engine)) tell(engine, { key } as DrivenRun, "value", "null");
        // A run whose script still writes is in the way of its removal.
        await rm(root, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
      },
    };
  },
  drive: {
    runs: (engine) => keysOf(engine).length,
    finish: (engine, run, value) => tell(engine, run, "value", JSON.stringify(value)),
    fail: (engine, run, { code, message }) => tell(engine, run, "error", `${code}: ${message}\n`),
    ask: (engine, run) => tell(engine, run, "ask", ""),
    answers: ({ stateDir }, { key }) => {
      const folder = join(stateDir, key, "answers");
      const names = existsSync(folder) ? readdirSync(folder) : [];
      return names.map((name) => {
        const { action, content } = JSON.parse(readFileSync(join(folder, name), "utf8"));
        return { accepted: action === "accept", ...(content && { content }) };
      });
    },
  },
});
