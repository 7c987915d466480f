/** The whole demo: two state machines behind the server, real clients of three generations in front of it. */
import { play, tell, verdict } from "@taskferry/example-stage";
import { Stage } from "./stage.js";
import {
  approvalsAreAsked,
  cancelsReachTheEngine,
  crowdsAreServed,
  failuresAreResults,
  plainClientsAreServed,
  repeatsStartNothingNew,
  reportsSurviveTheServer,
} from "./stories.js";

const stories = [
  reportsSurviveTheServer,
  failuresAreResults,
  approvalsAreAsked,
  cancelsReachTheEngine,
  repeatsStartNothingNew,
  crowdsAreServed,
  plainClientsAreServed,
];

console.log("Starting Step Functions; the first time, moto is installed for it …");
const stage = await Stage.open();
try {
  tell("engine", stage.cloud.name);
  await play(stories, stage);
} finally {
  await stage.close();
}
process.exitCode = verdict();
