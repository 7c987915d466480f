import type { CallContext, RunRef, WorkflowAdapter } from "@taskferry/core";
import { explain } from "./errors.js";
import { Deliveries } from "./events.js";
import { readLogs, START_CURSOR } from "./logs.js";
import type { ReadingOptions, RepositoryOptions } from "./options.js";
import { answerQuestion, questionGone } from "./questions.js";
import type { KnownRun } from "./ref.js";
import type { Session } from "./session.js";

/** The engine's name. Runs are claimed under it, so started, watched and re-run ones share it. */
export const ENGINE = "github-actions";

/** Gives the run that a stored ref names; `undefined` while it cannot be told. */
export type ResolveRef = (ref: RunRef, signal: AbortSignal) => Promise<KnownRun | undefined>;

type Parts = Required<Pick<WorkflowAdapter, "engine" | "explain" | "answer" | "logs">> &
  Pick<WorkflowAdapter, "events">;

/** What starting, watching and running again have in common once there is a run. */
export function runParts(
  session: Session,
  options: ReadingOptions & RepositoryOptions,
  resolve: ResolveRef,
): Parts {
  const { webhookSecret } = options;
  const secrets = typeof webhookSecret === "string" ? [webhookSecret] : (webhookSecret ?? []);
  const deliveries = secrets.length === 0 ? undefined : new Deliveries(secrets, options);
  return {
    engine: ENGINE,
    explain,
    async answer(ref, questionKey, answer, { signal }: CallContext) {
      const run = await resolve(ref, signal);
      if (run === undefined) throw questionGone();
      await answerQuestion(session.api, run, questionKey, answer, signal);
    },
    async logs(ref, cursor, { signal }: CallContext) {
      const run = await resolve(ref, signal);
      if (run === undefined) return { text: "", cursor: cursor ?? START_CURSOR };
      return readLogs(session, run, cursor, signal);
    },
    ...(deliveries === undefined ? {} : { events: (request) => deliveries.receive(request) }),
  };
}
