import { brokenBy, MUTANTS, unproven } from "./judge.js";

/** They mostly wait for situations that never show, so many fit side by side. */
const AT_ONCE = 10;

const faults: string[] = unproven().map((id) => `${id} is broken by no mutant`);
const width = Math.max(...MUTANTS.map((mutant) => mutant.breaks.length));

for (let first = 0; first < MUTANTS.length; first += AT_ONCE) {
  const mutants = MUTANTS.slice(first, first + AT_ONCE);
  const results = await Promise.all(
    mutants.map(async (mutant) => ({ mutant, broken: await brokenBy(mutant) })),
  );
  for (const { mutant, broken } of results) {
    const { breaks, fault } = mutant;
    const others = broken.filter(({ id }) => id !== breaks);
    const isKilled = broken.length > others.length;
    const verdict = !isKilled ? "SURVIVES" : others.length > 0 ? "TOO MANY" : "killed";
    console.log(`${verdict.padEnd(8)}  ${breaks.padEnd(width)}  ${fault}`);
    for (const { id, reason } of others) console.log(`${" ".repeat(10)}also ${id}: ${reason}`);
    if (!isKilled) faults.push(`"${fault}" does not break ${breaks}`);
    else if (others.length > 0) faults.push(`"${fault}" breaks more than ${breaks}`);
  }
}

const summary = faults.length === 0 ? "each killed by its own requirement only" : faults.join("\n");
console.log(`\n${MUTANTS.length} mutants, ${summary}`);
process.exitCode = faults.length === 0 ? 0 : 1;
