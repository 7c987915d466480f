/** The whole demo: a GitHub and the server of this example, real clients of three generations in front of it. */
import { deploymentsAreApproved, deploymentsAreRejected } from "./deploy-stories.js";
import { ciIsRun, failuresAreExplained, runsAreCancelled, runsAreWatched } from "./run-stories.js";
import { plainClientsAreServed, runsOutliveTheServer, webhooksWakeClients } from "./server-stories.js";
import { Stage } from "./stage.js";
import { check, tell, verdict } from "./timeline.js";

const stories = [
  ciIsRun,
  failuresAreExplained,
  runsAreWatched,
  deploymentsAreApproved,
  deploymentsAreRejected,
  runsAreCancelled,
  webhooksWakeClients,
  plainClientsAreServed,
  runsOutliveTheServer,
];

const stage = await Stage.open();
try {
  tell("github", `a server of GitHub's wire format at ${stage.github.server.url}`);
  for (const story of stories) {
    console.log(`\n${story.name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)}`);
    await story(stage);
  }
  const { problems } = stage.github.server;
  check("github", "all requests and answers were as GitHub's API description says", problems.length === 0);
  for (const problem of problems) tell("github", problem);
} finally {
  await stage.close();
}
process.exitCode = verdict();
