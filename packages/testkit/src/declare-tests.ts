import { afterAll, describe, expect, it } from "vitest";
import type { Verdict } from "./check.js";

/** Declares one vitest test per requirement, named after its id, and one for the skips themselves. */
export function declareTests<Id extends string, Required extends { readonly id: Id; readonly says: string }>(
  { name, timeoutMs = 30_000 }: { readonly name: string; readonly timeoutMs?: number },
  requirements: readonly Required[],
  faults: () => Promise<readonly string[]>,
  check: (requirement: Required) => Promise<Verdict<Id>>,
): void {
  describe(name, () => {
    const skipped = new Map<string, string>();

    it("has skips that are known, needed and explained", async () => {
      expect(await faults()).toEqual([]);
    });

    for (const requirement of requirements) {
      // The kit's own time-out says more than the runner's, so it has to come first.
      it(`${requirement.id}: ${requirement.says}`, { timeout: timeoutMs + 10_000 }, async (context) => {
        const { outcome, reason = "", error } = await check(requirement);
        if (outcome === "broken") throw error;
        if (outcome === "met") return;
        if (outcome === "skipped") skipped.set(requirement.id, reason);
        context.skip(reason);
      });
    }

    afterAll(() => {
      const lines = [...skipped].map(([id, reason]) => `  ${id}: ${reason}`);
      if (lines.length > 0) console.info(`${name}: ${lines.length} skipped\n${lines.join("\n")}`);
    });
  });
}
