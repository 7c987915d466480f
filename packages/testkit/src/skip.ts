import type { WorkflowAdapter } from "@taskferry/core";
import type { Drive, DriveName } from "./drive.js";
import type { Capability, Requirement } from "./requirement.js";
import type { RequirementId } from "./requirements/index.js";

/**
 * A requirement, or a situation with all requirements that need it, that this adapter does not meet, and why.
 * A skip that is not needed (any more) fails.
 */
export type Skip<Id extends string = RequirementId> =
  | { readonly id: Id; readonly reason: string }
  /** A situation that cannot be forced on this engine. */
  | { readonly drive: DriveName; readonly reason: string };

/** What is to be done with a requirement, before the adapter has been seen. */
export type Plan =
  | { readonly kind: "play" }
  /** Skipped, and it has to fail if it can be played. */
  | { readonly kind: "expect-failure"; readonly reason: string }
  | { readonly kind: "skip"; readonly reason: string }
  /** Neither can it be played nor does a skip say why. */
  | { readonly kind: "undeclared"; readonly missing: readonly DriveName[] };

/** What skips are about: a requirement of an adapter, or of a server with it. */
export type Skippable = Pick<Requirement, "id" | "drive" | "adapter">;

/** What is wrong with the skips themselves, for such an adapter. */
export function skipFaults<Engine>(
  requirements: readonly Skippable[],
  drive: Drive<Engine>,
  skips: readonly Skip<string>[],
  adapter: WorkflowAdapter,
): string[] {
  const seen = new Set<string>();
  return skips.flatMap((skip) => {
    const name = "id" in skip ? skip.id : `drive ${skip.drive}`;
    const faults: string[] = [];
    if (seen.has(name)) faults.push(`${name} is skipped twice`);
    seen.add(name);
    if (skip.reason.trim() === "") faults.push(`${name} is skipped without a reason`);
    if ("id" in skip) {
      if (!requirements.some(({ id }) => id === skip.id)) faults.push(`there is no requirement ${skip.id}`);
    } else {
      const needing = requirements.filter((requirement) => requirement.drive.includes(skip.drive));
      if (needing.length === 0) {
        faults.push(`no requirement needs a situation ${skip.drive}`);
      } else if (needing.every((requirement) => lacking(requirement, adapter).length > 0)) {
        faults.push(`${name} is skipped, but nothing that needs it applies to this adapter`);
      }
      if (drive[skip.drive] !== undefined) faults.push(`${name} is skipped, but the drive can force it`);
    }
    return faults;
  });
}

/** Decides what to do with a requirement. */
export function plan<Engine>(
  requirement: Skippable,
  drive: Drive<Engine>,
  skips: readonly Skip<string>[],
): Plan {
  const missing = requirement.drive.filter((name) => drive[name] === undefined);
  const own = skips.find((skip) => "id" in skip && skip.id === requirement.id);
  if (missing.length === 0) return own ? { kind: "expect-failure", reason: own.reason } : { kind: "play" };
  const reasons = missing.map((name) => skips.find((skip) => "drive" in skip && skip.drive === name)?.reason);
  const reason = own?.reason ?? reasons.find((found) => found !== undefined);
  const isDeclared = own !== undefined || reasons.every((found) => found !== undefined);
  return isDeclared && reason !== undefined ? { kind: "skip", reason } : { kind: "undeclared", missing };
}

/** The parts of the contract that a requirement is about and this adapter does not have. */
export function lacking(requirement: Skippable, adapter: WorkflowAdapter): readonly Capability[] {
  return requirement.adapter.filter((part) => !adapter[part]);
}
