/** Webhook deliveries as GitHub makes them: Octokit's recorded payloads with our runs in them, signed. */
import { createHmac, randomUUID } from "node:crypto";
import { createRequire } from "node:module";
import { JSONStringify } from "json-with-bigint";
import { jobObject, runObject } from "./protocol-objects.js";
import { latest, type RunRecord } from "./protocol-state.js";

type Wire = Record<string, unknown>;

interface Example {
  readonly name: string;
  readonly examples: readonly Wire[];
}

const EXAMPLES: readonly Example[] = createRequire(import.meta.url)("@octokit/webhooks-examples");

/** One delivery, ready to be sent. */
export interface Delivery {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** What GitHub would send about a run as it is now. */
export function deliveryOf(
  origin: string,
  event: "workflow_run" | "workflow_job" | "deployment_review",
  run: RunRecord,
  secret: string,
): Delivery {
  const example = EXAMPLES.find(({ name }) => name === event)?.examples[0] ?? {};
  const { repository, workflow_run, workflow_job, ...rest } = structuredClone(example);
  const { owner, name } = run.repository;
  const attempt = latest(run);
  const job = attempt.jobs.at(-1);
  const body = JSONStringify({
    ...rest,
    repository: {
      ...(repository as Wire),
      name,
      full_name: `${owner}/${name}`,
      owner: { ...((repository as Wire)["owner"] as Wire), login: owner },
    },
    ...(workflow_run === undefined
      ? {}
      : { workflow_run: { ...workflow_run, ...runObject(origin, run, attempt) } }),
    ...(workflow_job === undefined || job === undefined
      ? {}
      : { workflow_job: { ...workflow_job, ...jobObject(origin, run, attempt, job) } }),
  });
  return {
    headers: {
      "content-type": "application/json",
      "user-agent": "GitHub-Hookshot/044aadd",
      "x-github-event": event,
      "x-github-delivery": randomUUID(),
      "x-hub-signature-256": `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`,
    },
    body,
  };
}

/** Sends it. @returns the status of the answer */
export async function deliver(url: string | URL, { headers, body }: Delivery): Promise<number> {
  const response = await fetch(url, { method: "POST", headers, body });
  await response.arrayBuffer();
  return response.status;
}
