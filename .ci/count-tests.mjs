/** Prints "passed failed skipped" of a vitest JSON report. A file that failed outside of its tests counts as one failure. */
import { readFileSync } from "node:fs";

const report = JSON.parse(readFileSync(process.argv[2], "utf8"));
const brokenFiles = report.testResults.filter(
  ({ status, assertionResults }) =>
    status === "failed" && !assertionResults.some((test) => test.status === "failed"),
);
const skipped = report.numPendingTests + (report.numTodoTests ?? 0);
console.log(report.numPassedTests, report.numFailedTests + brokenFiles.length, skipped);
