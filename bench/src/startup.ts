/** From spawn to the first `tools/list` over stdio, against a bare SDK server with the same tool. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { report } from "./table.js";

export async function benchStartup(runs: number): Promise<void> {
  const times: Record<string, number[]> = { taskferry: [], sdk: [] };
  const memories: Record<string, number[]> = { taskferry: [], sdk: [] };
  // In turns, so that a slow moment of the machine meets both.
  for (let i = 0; i < runs; i++) {
    for (const kind of ["taskferry", "sdk"]) {
      const { ms, rss } = await firstList(kind);
      times[kind]?.push(ms);
      memories[kind]?.push(rss);
    }
  }
  const median = (values: number[] = []) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
  const [ours, bare] = [median(times.taskferry), median(times.sdk)];
  report({
    what: "stdio: spawn to first tools/list",
    value: `${ours.toFixed(0)} ms`,
    baseline: `${bare.toFixed(0)} ms bare SDK server`,
    ratio: ours / bare,
    aim: { atMost: 1.3 },
  });
  const mib = (bytes: number) => `${(bytes / 1024 / 1024).toFixed(0)} MiB`;
  const [used, bareUsed] = [median(memories.taskferry), median(memories.sdk)];
  report({
    what: "stdio: memory then",
    value: mib(used),
    baseline: `${mib(bareUsed)} bare SDK server`,
    ratio: used / bareUsed,
  });
}

async function firstList(kind: string): Promise<{ ms: number; rss: number }> {
  const script = fileURLToPath(new URL("./stdio-server.js", import.meta.url));
  const started = performance.now();
  const child = spawn(process.execPath, [script, kind], { stdio: ["pipe", "pipe", "pipe", "ipc"] });
  let output = "";
  let answered: () => void = () => {};
  child.stdout?.on("data", (chunk) => {
    output += chunk;
    if (output.includes('"id":2')) answered();
  });
  const waiting = new Promise<void>((resolve) => {
    answered = resolve;
  });
  const clientInfo = { name: "bench", version: "0" };
  const messages = [
    { id: 1, method: "initialize", params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo } },
    { method: "notifications/initialized" },
    { id: 2, method: "tools/list" },
  ];
  for (const message of messages) child.stdin?.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  await waiting;
  const ms = performance.now() - started;
  const told = once(child, "message");
  child.send("memory");
  const [rss] = await told;
  const gone = once(child, "exit");
  child.kill("SIGKILL");
  await gone;
  return { ms, rss: Number(rss) };
}
