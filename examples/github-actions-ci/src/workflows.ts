import { defineWorkflow, type Workflow } from "@taskferry/core";
import {
  describeWorkflow,
  githubActions,
  rerun,
  rerunSchema,
  runResultSchema,
  watchRun,
  watchRunSchema,
} from "@taskferry/github-actions";

/** A repository, and how to reach it. */
export interface GitHub {
  readonly owner: string;
  readonly repo: string;
  readonly auth?: string;
  readonly baseUrl?: string;
  readonly webhookSecret?: string;
}

/** A repository's CI as tools: run it, watch a run, run failed jobs again, deploy with a human's approval. */
export async function workflows(github: GitHub): Promise<Workflow[]> {
  const ci = { ...github, workflow: "ci.yml", refs: ["*", "*/*"] };
  const deploy = { ...github, workflow: "deploy.yml" };
  return [
    defineWorkflow({
      name: "run_ci",
      description: "Runs the CI on a branch and tells which jobs failed and why. Takes minutes.",
      input: (await describeWorkflow(ci)).inputSchema,
      output: runResultSchema,
      adapter: githubActions(ci),
    }),
    defineWorkflow({
      name: "watch_run",
      description: "Waits for a run that exists, and tells how it ends. Starts nothing.",
      input: watchRunSchema(github),
      output: runResultSchema,
      adapter: watchRun(github),
      annotations: { readOnlyHint: true },
    }),
    defineWorkflow({
      name: "rerun_failed",
      description: "Runs the failed jobs of a finished run again.",
      input: rerunSchema(github),
      output: runResultSchema,
      adapter: rerun(github),
    }),
    defineWorkflow({
      name: "deploy",
      description: "Deploys the default branch. Asks a human where the environment wants a review.",
      input: (await describeWorkflow(deploy)).inputSchema,
      output: runResultSchema,
      adapter: githubActions(deploy),
      annotations: { destructiveHint: true },
    }),
  ];
}
