/** The contract, played on a real Restate server. */
import { testAdapter } from "@taskferry/testkit";
import { afterAll } from "vitest";
import { drive, restateSubjects } from "./engine.js";

const subjects = restateSubjects();
afterAll(async () => (await subjects).stop());

testAdapter({
  name: "the adapter contract, by Restate",
  create: async () => (await subjects).create(),
  drive,
  skip: [
    { drive: "queue", reason: "A workflow begins at once: each workflow id has a queue of its own" },
    { drive: "revive", reason: "Restarting an invocation makes a new one, with a new id" },
    { drive: "omitStartId", reason: "Every answer to a start names the invocation" },
    { drive: "maxInputBytes", reason: "Restate's limit is the message size that its operator allows" },
  ],
});
