import { expect, it } from "vitest";
import { answerProblem, example, requestProblem } from "../emulator/src/openapi.js";

it("accepts GitHub's own examples, and sees what is missing from them", () => {
  const run = example("workflow-run");
  const path = "/repos/{owner}/{repo}/actions/runs/{run_id}";
  expect(answerProblem("GET", path, 200, run)).toBeUndefined();
  const { jobs_url: _, ...incomplete } = run;
  expect(answerProblem("GET", path, 200, incomplete)).toContain("jobs_url");
  expect(answerProblem("GET", path, 200, { ...run, id: "5" })).toContain("integer");
  expect(answerProblem("GET", path, 404, { message: "Not Found" })).toBeUndefined();
  expect(answerProblem("GET", "/nowhere", 200, {})).toContain("not in GitHub's description");
});

it("sees what is wrong with a request", () => {
  const path = "/repos/{owner}/{repo}/actions/workflows/{workflow_id}/dispatches";
  expect(requestProblem("POST", path, { ref: "main", inputs: {} })).toBeUndefined();
  expect(requestProblem("POST", path, { inputs: {} })).toContain("ref");
});
