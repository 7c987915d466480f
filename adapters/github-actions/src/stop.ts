import type { StopRequest } from "@taskferry/core";
import { refused, statusOf } from "./errors.js";
import type { KnownRun } from "./ref.js";
import type { Session } from "./session.js";

/**
 * Asks GitHub to cancel a run; by force, once the cancel is older than `forceAfterMs`. A cancel that GitHub took is
 * a request: `always()` steps run on, and the next reads tell when the run has ended, and how.
 */
export async function stopRun(
  session: Session,
  ref: KnownRun,
  request: StopRequest,
  forceAfterMs: number | undefined,
): Promise<void> {
  const { api, runs } = session;
  const run = await runs.read(ref, ref.runId, request.signal);
  // A later attempt was asked for by somebody else.
  if (run.attempt > (ref.attempt ?? 1)) return;
  const held = run.conclusion === "action_required";
  if (run.status === "completed" && !held) return;
  const force = forceAfterMs !== undefined && request.stopsSent > 0 && request.requestedAgoMs >= forceAfterMs;
  try {
    const route = `/repos/{owner}/{repo}/actions/runs/{run_id}/${force ? "force-cancel" : "cancel"}`;
    await api.send(ref, route, { run_id: ref.runId }, request.signal);
  } catch (error) {
    if (statusOf(error) !== 409) throw error;
    if (held) {
      throw refused(
        "NotCancellable",
        "GitHub does not cancel a run that waits for a maintainer's approval. It runs nothing unless approved.",
      );
    }
    // It ended first: the next read tells how.
  }
}
