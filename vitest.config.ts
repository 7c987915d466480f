import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

/** Where CI wants the counts: a file that the tests themselves cannot write to by accident. */
const report = process.env.TASKFERRY_TEST_REPORT;

export default defineConfig({
  test: {
    projects: ["packages/*", "adapters/*", "examples/*", "docs"],
    // Many tests wait for processes of their own: as many workers as there are cores leave the cores idle.
    maxWorkers: Math.ceil(availableParallelism() * 1.5),
    // Loading the SDKs anew for every file takes a quarter of the time. Files run in any order: `--sequence.shuffle.files`.
    isolate: false,
    reporters: report === undefined ? ["default"] : ["default", ["json", { outputFile: report }]],
  },
});
