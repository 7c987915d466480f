/** The whole demo: a GitHub and the server of this example, real clients of three generations in front of it. */
import { check, play, tell, verdict } from "@taskferry/example-stage";
import { deploymentsAreApproved, deploymentsAreRejected } from "./deploy-stories.js";
import { ciIsRun, failuresAreExplained, runsAreCancelled, runsAreWatched } from "./run-stories.js";
import { plainClientsAreServed, runsOutliveTheServer, webhooksWakeClients } from "./server-stories.js";
import { Stage } from "./stage.js";

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
  await play(stories, stage);
  const { problems } = stage.github.server;
  check("github", "all requests and answers were as GitHub's API description says", problems.length === 0);
  for (const problem of problems) tell("github", problem);
} finally {
  await stage.close();
}
process.exitCode = verdict();
