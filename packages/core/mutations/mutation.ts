/** One small mistake in the source, and the test that must notice it. */
export interface Mutation {
  /** What is wrong now. */
  readonly name: string;
  /** Below `src/`. */
  readonly file: string;
  /** Occurs exactly once in the file. */
  readonly search: string;
  readonly replace: string;
  /** Below `test/`. */
  readonly test: string;
  /** How the name of the test begins, clause first: `"4.8 request ids of two sessions"`. */
  readonly caughtBy: string;
}

/** The clause of SEP-1686 that a mutation breaks. */
export function clauseOf({ caughtBy }: Mutation): string {
  return caughtBy.slice(0, caughtBy.indexOf(" "));
}
