// A server that starts one run and dies of it, or does not: `node starter.mjs <options as JSON> <key>`.
import { localProcess } from "../dist/index.js";

const [options, key] = process.argv.slice(2);
const adapter = localProcess(JSON.parse(options));
globalThis.armDeath?.();
await adapter.start({ key, input: {}, retry: false, signal: new AbortController().signal });
// By a plain write: `console.log` is one of the calls to die at.
process.stdout._handle?.setBlocking?.(true);
process.stdout.write("started\n", () => process.exit(0));
