/** The whole demo: two state machines behind the server, real clients of three generations in front of it. */
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
import { tell, verdict } from "./timeline.js";

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
  for (const story of stories) {
    console.log(`\n${story.name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)}`);
    await story(stage);
  }
} finally {
  await stage.close();
}
process.exitCode = verdict();
