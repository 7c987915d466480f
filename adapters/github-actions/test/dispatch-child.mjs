// One start in a process of its own, to be killed: node dispatch-child.mjs <options> <key>
import { githubActions } from "../dist/index.js";

const [, , options = "{}", key = ""] = process.argv;
const adapter = githubActions(JSON.parse(options));
const { ref } = await adapter.start({ key, input: {}, retry: false, signal: new AbortController().signal });
process.stdout.write(JSON.stringify(ref));
