/** Deployments that wait for a review: the environment's question goes to the human in front of the client. */
import { type Answerer, check, tell, until, withClients } from "@taskferry/example-stage";
import { runOf } from "./results.js";
import type { Stage } from "./stage.js";

export function deploymentsAreApproved(stage: Stage): Promise<void> {
  return review(stage, "production", "approve");
}

export function deploymentsAreRejected(stage: Stage): Promise<void> {
  return review(stage, "staging", "reject");
}

async function review(stage: Stage, name: string, decision: "approve" | "reject"): Promise<void> {
  const { github } = stage;
  const answer =
    (generation: string): Answerer =>
    ({ message }) => {
      tell(generation, `is asked: ${message}`);
      return { action: "accept", content: { decision, comment: `${decision}: ${generation}` } };
    };
  await withClients(await stage.clients(answer), async (client) => {
    const { generation } = client;
    const environment = `${name}-${generation}`;
    const task = await client.start("deploy", { environment });
    const run = github.runWith({ environment });
    await github.waitForReview(run, environment);
    const ended = task.end();
    const [reviewed] = await until(
      "the review",
      async () => run.reviews,
      ({ length }) => length > 0,
    );
    tell("github", `${reviewed?.environment} is ${reviewed?.state}: "${reviewed?.comment}"`);
    await github.goOn(run);
    const { result } = await ended;
    const { conclusion } = runOf(result);
    const approved = decision === "approve";
    const right =
      reviewed?.state === (approved ? "approved" : "rejected") &&
      reviewed.comment === `${decision}: ${generation}` &&
      conclusion === (approved ? "success" : "failure") &&
      (result?.isError ?? false) === !approved;
    check(generation, `the deployment ends as ${conclusion}`, right && run.reviews.length === 1);
  });
}
