import { checkSkips } from "../check.js";
import { declareTests } from "../declare-tests.js";
import { type CheckServerOptions, checkServerRequirement } from "./check-server.js";
import { SERVER_REQUIREMENTS } from "./requirements.js";

/** Options of {@link testServer}. */
export interface TestServerOptions<Engine> extends CheckServerOptions<Engine> {
  /** Heads the tests. @default "the adapter behind a server" */
  readonly name?: string;
}

/**
 * Puts the adapter behind a real server (HTTP on loopback, SQLite in a temporary folder) and plays real clients of all
 * three generations of MCP Tasks against it: one vitest test per generation and play. Takes what `testAdapter` takes.
 *
 * @example
 * testServer({ create, drive });
 */
export function testServer<Engine>(options: TestServerOptions<Engine>): void {
  declareTests(
    { name: "the adapter behind a server", ...options },
    SERVER_REQUIREMENTS,
    () => checkSkips(options, SERVER_REQUIREMENTS),
    (requirement) => checkServerRequirement(requirement, options),
  );
}
