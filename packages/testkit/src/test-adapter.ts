import { afterAll, describe, expect, it } from "vitest";
import { type CheckOptions, checkRequirement, checkSkips } from "./check.js";
import { REQUIREMENTS } from "./requirements/index.js";

/** Options of {@link testAdapter}. */
export interface TestAdapterOptions<Engine> extends CheckOptions<Engine> {
  /** Heads the tests. @default "the adapter contract" */
  readonly name?: string;
}

/**
 * Declares one vitest test per requirement, named after its id. Call it at the top of a test file.
 *
 * @example
 * testAdapter({
 *   create: async () => {
 *     const engine = await startMyEngine();
 *     return { engine, connect: () => myEngine({ url: engine.url }), close: () => engine.close() };
 *   },
 *   drive: { finish: (engine, run, value) => engine.complete(run.ref, value) },
 *   skip: [{ drive: "queue", reason: "The engine starts at once" }],
 * });
 */
export function testAdapter<Engine>(options: TestAdapterOptions<Engine>): void {
  const { name = "the adapter contract", timeoutMs = 30_000 } = options;
  describe(name, () => {
    const skipped = new Map<string, string>();

    it("has skips that are known, needed and explained", async () => {
      expect(await checkSkips(options)).toEqual([]);
    });

    for (const requirement of REQUIREMENTS) {
      // The kit's own time-out says more than the runner's, so it has to come first.
      it(`${requirement.id}: ${requirement.says}`, { timeout: timeoutMs + 10_000 }, async (context) => {
        const { outcome, reason = "", error } = await checkRequirement(requirement, options);
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
