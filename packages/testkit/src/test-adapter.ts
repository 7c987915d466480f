import { type CheckOptions, checkRequirement, checkSkips } from "./check.js";
import { declareTests } from "./declare-tests.js";
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
  declareTests(
    { name: "the adapter contract", ...options },
    REQUIREMENTS,
    () => checkSkips(options),
    (requirement) => checkRequirement(requirement, options),
  );
}
