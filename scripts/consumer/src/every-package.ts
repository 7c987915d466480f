/** Every package loads, and its types hold with `skipLibCheck` off. */
import { equal } from "node:assert/strict";
import { asyncFunction } from "@taskferry/function";
import { githubActions } from "@taskferry/github-actions";
import { googleWorkflows } from "@taskferry/google-workflows";
import { localProcess } from "@taskferry/process";
import { stepFunctions } from "@taskferry/step-functions";

for (const factory of [asyncFunction, githubActions, googleWorkflows, localProcess, stepFunctions]) {
  equal(typeof factory, "function");
}
console.log("every adapter loads");
