import { type CheckOptions, checkOn, checkSkips, type Verdict } from "../check.js";
import { SERVER_REQUIREMENTS, type ServerRequirement, type ServerRequirementId } from "./requirements.js";
import { ServerStage } from "./stage.js";

/** What is tested, and how. The same as for the adapter alone, but for the skips' ids. */
export type CheckServerOptions<Engine> = CheckOptions<Engine, ServerRequirementId>;

/** Plays one server requirement, with its skip. Never rejects. */
export function checkServerRequirement<Engine>(
  requirement: ServerRequirement,
  options: CheckServerOptions<Engine>,
): Promise<Verdict<ServerRequirementId>> {
  return checkOn(() => ServerStage.open({ patienceMs: 10_000, ...options }), requirement, options);
}

/** Plays all server requirements, one after the other. Throws when the skips themselves are wrong. */
export async function checkServer<Engine>(
  options: CheckServerOptions<Engine>,
): Promise<Verdict<ServerRequirementId>[]> {
  const faults = await checkSkips(options, SERVER_REQUIREMENTS);
  if (faults.length > 0) throw new Error(`Wrong skips: ${faults.join("; ")}.`);
  const verdicts: Verdict<ServerRequirementId>[] = [];
  for (const requirement of SERVER_REQUIREMENTS) {
    verdicts.push(await checkServerRequirement(requirement, options));
  }
  return verdicts;
}
