/** The whole demo: two workflows behind the server, real clients of three generations in front of it. */
import { play, tell, verdict } from "@taskferry/example-stage";
import {
  cancelsReachGoogle,
  failuresAreReadable,
  ordersAreShipped,
  refundsAreAsked,
} from "./order-stories.js";
import { plainClientsAreServed, pushesWakeClients, startsOutliveTheServer } from "./server-stories.js";
import { Stage } from "./stage.js";

const stories = [
  ordersAreShipped,
  failuresAreReadable,
  refundsAreAsked,
  cancelsReachGoogle,
  pushesWakeClients,
  plainClientsAreServed,
  startsOutliveTheServer,
];

const stage = await Stage.open();
try {
  tell("google", "a local server of Google's gRPC and REST protocols plays the two workflows");
  await play(stories, stage);
} finally {
  await stage.close();
}
process.exitCode = verdict();
