import { describe, expect, it } from "vitest";
import { brokenBy, MUTANTS, unproven } from "../mutants/judge.js";

describe("mutants", () => {
  it("are there for every requirement", () => {
    expect(unproven()).toEqual([]);
  });

  it.concurrent.each(MUTANTS)("$breaks notices: $fault", { timeout: 60_000 }, async (mutant) => {
    const broken = await brokenBy(mutant);
    expect(broken.map(({ id }) => id)).toEqual([mutant.breaks]);
  });
});
