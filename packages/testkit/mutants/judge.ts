import { checkRequirement } from "@taskferry/testkit/check";
import { REQUIREMENTS, type RequirementId } from "@taskferry/testkit/requirements";
import { type NativeRun, ScriptedEngine } from "./engine.js";
import { failures } from "./failing.js";
import { lifecycle } from "./lifecycle.js";
import type { Mutant } from "./mutant.js";
import { scriptedDrive, scriptedSubject } from "./subject.js";
import { talks } from "./talking.js";
import { tales } from "./telling.js";

/** All of them. */
export const MUTANTS: readonly Mutant[] = [...lifecycle, ...tales, ...talks, ...failures];

/** The requirements that a mutant breaks. */
export async function brokenBy(mutant: Mutant): Promise<{ id: RequirementId; reason: string }[]> {
  const shared = new Map<string, NativeRun>();
  const options = {
    create: () => scriptedSubject(new ScriptedEngine(mutant.sharesRuns ? shared : undefined), mutant.mutate),
    drive: scriptedDrive,
    // Long enough for a loaded machine, and all that a situation which never shows has to be waited for.
    patienceMs: 2000,
  };
  const broken: { id: RequirementId; reason: string }[] = [];
  const play = async (requirement: (typeof REQUIREMENTS)[number]) => {
    const { id, outcome, reason = "" } = await checkRequirement(requirement, options);
    if (outcome !== "met") broken.push({ id, reason: outcome === "broken" ? reason : outcome });
  };
  // Side by side, shared runs would be counted by everybody.
  if (mutant.sharesRuns) for (const requirement of REQUIREMENTS) await play(requirement);
  else await Promise.all(REQUIREMENTS.map(play));
  return broken;
}

/** The requirements that no mutant is there for. */
export function unproven(): RequirementId[] {
  const proven = new Set(MUTANTS.map((mutant) => mutant.breaks));
  return REQUIREMENTS.map(({ id }) => id).filter((id) => !proven.has(id));
}
