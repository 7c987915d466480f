import { defineConfig } from "vitest/config";

/** Where CI wants the counts: a file that the tests themselves cannot write to by accident. */
const report = process.env.TASKFERRY_TEST_REPORT;

export default defineConfig({
  test: {
    // Many tests wait for processes of their own: with vitest's one worker less than there are cores, two cores idle.
    maxWorkers: "100%",
    projects: ["packages/*", "adapters/*", "examples/*", "docs"],
    reporters: report === undefined ? ["default"] : ["default", ["json", { outputFile: report }]],
  },
});
