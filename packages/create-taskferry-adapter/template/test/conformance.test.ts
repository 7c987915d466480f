import { testAdapter, testServer } from "@taskferry/testkit";
import { create, drive } from "./drive.js";

testAdapter({
  create,
  drive,
  skip: [
    { drive: "revive", reason: "A job that has ended does not begin again" },
    { drive: "omitStartId", reason: "Every answer to a start names the job" },
    { drive: "maxInputBytes", reason: "The engine has no limit" },
  ],
});

// The same, behind a real server, with real clients of all three generations of MCP Tasks.
testServer({ create, drive });
