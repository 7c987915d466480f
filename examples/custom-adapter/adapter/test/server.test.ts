/** Clients of three generations, a Taskferry server, and a real Restate server. */
import { testServer } from "@taskferry/testkit";
import { afterAll } from "vitest";
import { drive, restateSubjects } from "./engine.js";

const subjects = restateSubjects();
afterAll(async () => (await subjects).stop());

testServer({
  name: "Restate behind a server",
  create: async () => (await subjects).create(),
  drive,
});
