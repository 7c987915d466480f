import { setTimeout as delay } from "node:timers/promises";
import type { WorkflowAdapter } from "@taskferry/core";
import type { Drive, Subject } from "./drive.js";
import type { Requirement } from "./requirement.js";
import { REQUIREMENTS, type RequirementId } from "./requirements/index.js";
import { Scene } from "./scene.js";
import { lacking, plan, type Skip, type Skippable, skipFaults } from "./skip.js";

/** What is tested, and how. */
export interface CheckOptions<Engine, Id extends string = RequirementId> {
  /** Makes a fresh engine, isolated from all others, for each requirement. */
  readonly create: () => Subject<Engine> | Promise<Subject<Engine>>;
  /** Forces native situations on such an engine. */
  readonly drive: Drive<Engine>;
  /** What this adapter does not do, and why. */
  readonly skip?: readonly Skip<Id>[];
  /** How long a situation may take to show in the reads, in milliseconds. @default 10000 */
  readonly patienceMs?: number;
  /** How long one requirement may take in all, in milliseconds. @default 30000 */
  readonly timeoutMs?: number;
}

/** How one requirement went. */
export interface Verdict<Id extends string = RequirementId> {
  readonly id: Id;
  readonly outcome: "met" | "broken" | "skipped" | "not applicable";
  /** Why it is not met. */
  readonly reason?: string;
  readonly error?: unknown;
}

/** Plays one requirement, with its skip. Never rejects. */
export function checkRequirement<Engine>(
  requirement: Requirement<RequirementId>,
  options: CheckOptions<Engine>,
): Promise<Verdict> {
  return checkOn(() => Scene.open({ patienceMs: 10_000, ...options }), requirement, options);
}

/** Where a requirement is played. */
interface Stage {
  readonly adapter: WorkflowAdapter;
  close(): Promise<void>;
}

/** Plays one requirement on a stage of its own, with its skip. Never rejects. */
export async function checkOn<Engine, Id extends string, On extends Stage>(
  open: () => Promise<On>,
  requirement: Skippable & { readonly id: Id; check(stage: On): Promise<void> },
  options: CheckOptions<Engine, Id>,
): Promise<Verdict<Id>> {
  const { id } = requirement;
  const planned = plan(requirement, options.drive, options.skip ?? []);
  const broken = (error: unknown): Verdict<Id> => ({
    id,
    outcome: "broken",
    reason: messageOf(error),
    error,
  });
  let stage: On | undefined;
  try {
    stage = await open();
    const missing = lacking(requirement, stage.adapter);
    if (missing.length > 0) {
      if (options.skip?.some((skip) => "id" in skip && skip.id === id)) {
        return broken(
          new Error(`Stale skip: it does not apply to an adapter without ${missing.join(", ")}.`),
        );
      }
      return { id, outcome: "not applicable", reason: `the adapter has no ${missing.join(", ")}` };
    }
    if (planned.kind === "skip") return { id, outcome: "skipped", reason: planned.reason };
    if (planned.kind === "undeclared") {
      const names = planned.missing.join(", ");
      return broken(new Error(`The drive has no ${names}. Add it, or a skip that says why it cannot be.`));
    }
    const failure = await play(requirement.check(stage), options.timeoutMs ?? 30_000);
    if (planned.kind === "expect-failure") {
      if (failure !== undefined) return { id, outcome: "skipped", reason: planned.reason };
      return broken(new Error("Stale skip: the requirement is met."));
    }
    return failure === undefined ? { id, outcome: "met" } : broken(failure.error);
  } catch (error) {
    return broken(error);
  } finally {
    await stage?.close();
  }
}

/** What is wrong with the skips themselves: unknown, doubled, unexplained, not needed. */
export async function checkSkips<Engine, Id extends string = RequirementId>(
  { create, drive, skip = [] }: CheckOptions<Engine, Id>,
  requirements: readonly Skippable[] = REQUIREMENTS,
): Promise<string[]> {
  const subject = await create();
  try {
    const adapter = await subject.connect();
    const faults = skipFaults(requirements, drive, skip, adapter);
    await adapter.close?.();
    return faults;
  } finally {
    await subject.close?.();
  }
}

/** Plays all requirements, one after the other. Throws when the skips themselves are wrong. */
export async function checkAdapter<Engine>(options: CheckOptions<Engine>): Promise<Verdict[]> {
  const faults = await checkSkips(options);
  if (faults.length > 0) throw new Error(`Wrong skips: ${faults.join("; ")}.`);
  const verdicts: Verdict[] = [];
  for (const requirement of REQUIREMENTS) verdicts.push(await checkRequirement(requirement, options));
  return verdicts;
}

async function play(playing: Promise<void>, timeoutMs: number): Promise<{ error: unknown } | undefined> {
  const over = new AbortController();
  const late = delay(
    timeoutMs,
    { error: new Error(`Not settled within ${timeoutMs} ms.`) },
    { signal: over.signal },
  );
  late.catch(() => undefined);
  const played = playing.then(
    () => undefined,
    (error: unknown) => ({ error }),
  );
  const failure = await Promise.race([played, late]);
  over.abort();
  return failure;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? (error.message.split("\n")[0] ?? error.name) : String(error);
}
