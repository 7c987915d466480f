/** `pnpm bench [--quick]`: what Taskferry costs, in ratios against baselines of the same run. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { benchEngine } from "./engine.js";
import { benchHttp, benchPolling } from "./http.js";
import { benchSize } from "./size.js";
import { benchStartup } from "./startup.js";
import { measureNoise, printTable } from "./table.js";

const quick = process.argv.includes("--quick");
const folder = await mkdtemp(join(tmpdir(), "taskferry-bench-"));
const noise = measureNoise();
try {
  await benchEngine(folder, quick ? 1_500 : 6_000);
  await benchHttp(quick ? 2_000 : 8_000);
  await benchSize(folder, quick ? [1_000, 100_000] : [1_000, 100_000, 1_000_000]);
  await benchPolling(quick ? 500 : 5_000, quick ? 100 : 1_000, quick ? 4_000 : 15_000);
  await benchStartup(quick ? 3 : 9);
} finally {
  await rm(folder, { recursive: true, force: true });
}
const below = printTable(noise);
console.log(below === 0 ? "Every aim is met." : `${below} below their aim: see docs/bench.md for why.`);
