// Runs the compiler of this workspace on its core package, as a developer would.
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const project = fileURLToPath(new URL("../../../packages/core/tsconfig.json", import.meta.url));
console.log("checking packages/core");
const child = spawn("npx", ["--no-install", "tsc", "-p", project, "--noEmit"], {
  cwd: root,
  stdio: "inherit",
});
child.on("close", (code) => {
  console.log(code === 0 ? "no type errors" : "type errors");
  process.exitCode = code ?? 1;
});
