import { type Answer, EngineError, type JsonObject, type Question } from "@taskferry/core";
import type { GitHubApi, Repository } from "./api.js";
import { refused, statusOf } from "./errors.js";
import { named } from "./jobs.js";
import type { KnownRun } from "./ref.js";

import {
  fields,
  items,
  type PendingDeployment,
  type Run,
  toPendingDeployment,
  toRepositoryInfo,
  wireId,
} from "./wire.js";

/** What a waiting run waits for. */
export interface Waiting {
  /** Those that this identity may answer. */
  readonly questions: readonly Question[];
  /** What is waited for, with those who may answer where that is somebody else. */
  readonly message: string;
}

const PENDING = "/repos/{owner}/{repo}/actions/runs/{run_id}/pending_deployments";

const REVIEW_SCHEMA: JsonObject = {
  type: "object",
  properties: {
    decision: {
      type: "string",
      title: "Decision",
      description: "Approve lets the deployment go on; reject ends it as failed.",
      enum: ["approve", "reject"],
    },
    comment: { type: "string", title: "Comment", description: "Shown with the review on GitHub." },
  },
  required: ["decision"],
};

/** The environments that a run waits for, one question each. `undefined`: none. */
export async function waitingDeployments(
  api: GitHubApi,
  repository: Repository,
  run: Run,
  signal: AbortSignal,
): Promise<Waiting | undefined> {
  const pending = await readPending(api, repository, run.id, signal);
  if (pending.length === 0) return undefined;
  const mine = pending.filter(({ mayApprove }) => mayApprove);
  if (mine.length === 0) return { questions: [], message: named(pending.map(waitedFor)) };
  const reviewed = await readReviewed(api, repository, run.id, signal);
  const questions = mine.map((deployment) => ({
    key: questionKey(deployment, run.attempt, reviewed),
    message: `Deploy to "${deployment.environment}"? ${about(run)} waits for a review.`,
    schema: REVIEW_SCHEMA,
  }));
  return { questions, message: named(pending.map(waitedFor)) };
}

/** The question of a pull request from a fork, if this identity may answer it. */
export async function waitingApproval(
  api: GitHubApi,
  repository: Repository,
  run: Run,
  signal: AbortSignal,
): Promise<Waiting> {
  const message = "Waits for a maintainer to approve running workflows of this pull request";
  // Approving needs write access; where the server does not say, the answer will show.
  const { mayPush } = await api.get(repository, "/repos/{owner}/{repo}", {}, toRepositoryInfo, signal);
  if (mayPush === false) return { questions: [], message };
  const question: Question = {
    key: `approval:${run.attempt}`,
    message: `Let it run? ${about(run)} comes from a fork and waits for a maintainer's approval.`,
  };
  return { questions: [question], message };
}

/** Delivers an answer to one of the questions above. Throws (`gone`) when it is no longer open. */
export async function answerQuestion(
  api: GitHubApi,
  ref: KnownRun,
  key: string,
  answer: Answer,
  signal: AbortSignal,
): Promise<void> {
  // Dismissed without a choice: the run waits on, for whoever answers on GitHub.
  if (answer.action === "cancel") return;
  if (key.startsWith("approval:")) return approve(api, ref, answer, signal);
  const environmentId = /^deployment:(\d+):/.exec(key)?.[1];
  if (environmentId === undefined) throw questionGone();

  const attempt = Number(key.split(":")[2]);
  if (!(await isOpen(api, ref, key, environmentId, attempt, signal))) throw questionGone();
  try {
    await api.send(
      ref,
      PENDING,
      { run_id: ref.runId, environment_ids: [wireId(environmentId)], ...reviewOf(answer) },
      signal,
    );
  } catch (error) {
    // Somebody else was faster.
    const status = statusOf(error);
    if (
      (status === 404 || status === 422) &&
      !(await isOpen(api, ref, key, environmentId, attempt, signal))
    ) {
      throw questionGone(error);
    }
    throw error;
  }
}

function reviewOf(answer: Answer): { readonly state: "approved" | "rejected"; readonly comment: string } {
  const decision = answer.action === "decline" ? "reject" : answer.content?.["decision"];
  if (decision !== "approve" && decision !== "reject") {
    throw refused("InvalidAnswer", "`decision` must be approve or reject.");
  }
  const comment = answer.content?.["comment"];
  return {
    state: decision === "approve" ? "approved" : "rejected",
    // GitHub requires the property.
    comment: typeof comment === "string" ? comment : "",
  };
}

async function approve(api: GitHubApi, ref: KnownRun, answer: Answer, signal: AbortSignal): Promise<void> {
  if (answer.action !== "accept") {
    throw refused(
      "NotDeclinable",
      "GitHub cannot refuse a run that waits for approval: it stays as it is and runs nothing.",
    );
  }
  try {
    const route = "/repos/{owner}/{repo}/actions/runs/{run_id}/approve";
    await api.send(ref, route, { run_id: ref.runId }, signal);
  } catch (error) {
    if (statusOf(error) === 409) throw questionGone(error);
    throw error;
  }
}

async function isOpen(
  api: GitHubApi,
  ref: KnownRun,
  key: string,
  environmentId: string,
  attempt: number,
  signal: AbortSignal,
): Promise<boolean> {
  const pending = await readPending(api, ref, ref.runId, signal);
  const deployment = pending.find((candidate) => candidate.environmentId === environmentId);
  if (deployment === undefined) return false;
  return questionKey(deployment, attempt, await readReviewed(api, ref, ref.runId, signal)) === key;
}

function readPending(
  api: GitHubApi,
  repository: Repository,
  runId: string,
  signal: AbortSignal,
): Promise<readonly PendingDeployment[]> {
  const pick = (data: unknown) => items(data).map(toPendingDeployment);
  return api.get(repository, PENDING, { run_id: runId }, pick, signal);
}

/** How often each environment of a run has been reviewed. */
async function readReviewed(
  api: GitHubApi,
  repository: Repository,
  runId: string,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, number>> {
  const pick = (data: unknown) => {
    const reviewed = new Map<string, number>();
    for (const review of items(data)) {
      for (const environment of items(review, "environments")) {
        const id = String(fields(environment)["id"]);
        reviewed.set(id, (reviewed.get(id) ?? 0) + 1);
      }
    }
    return reviewed;
  };
  const route = "/repos/{owner}/{repo}/actions/runs/{run_id}/approvals";
  return api.get(repository, route, { run_id: runId }, pick, signal);
}

/** Two jobs of one run may deploy to the same environment, one after the other: those are two questions. */
function questionKey(
  deployment: PendingDeployment,
  attempt: number,
  reviewed: ReadonlyMap<string, number>,
): string {
  const { environmentId } = deployment;
  return `deployment:${environmentId}:${attempt}:${reviewed.get(environmentId) ?? 0}`;
}

function waitedFor({ environment, mayApprove, reviewers, waitTimerMinutes }: PendingDeployment): string {
  const name = `Environment "${environment}"`;
  if (mayApprove) return `${name} waits for a review`;
  if (reviewers.length > 0) return `${name} waits for a review by ${reviewers.join(", ")}`;
  return waitTimerMinutes > 0
    ? `${name} waits for its timer of ${waitTimerMinutes} minutes`
    : `${name} waits for its protection rules`;
}

function about(run: Run): string {
  return `Run ${run.number} of ${run.workflow} (${run.branch ?? "no branch"}, ${run.sha.slice(0, 7)})`;
}

/** A question that nobody asks any more. */
export function questionGone(cause?: unknown): EngineError {
  const message = "The run no longer waits for this: it was answered on GitHub, or it ended.";
  return new EngineError({ kind: "gone", code: "QuestionGone", message }, cause);
}
