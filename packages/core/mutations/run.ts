/**
 * Breaks the source in many small ways and demands that the test named for it notices each: a test that has never been
 * seen to fail proves nothing. Exits with 1 if a mutation survives, or if its place in the source is no longer found.
 */
import { availableParallelism } from "node:os";
import { BEHAVIOR_MUTATIONS } from "./behavior.js";
import { CONTROL_MUTATIONS } from "./control.js";
import { MESSAGE_MUTATIONS } from "./messages.js";
import { clauseOf, type Mutation } from "./mutation.js";
import { Sandbox } from "./sandbox.js";

/** Every clause of the founding document that has rules for a server. */
const CLAUSES = [
  ...["3.1", "3.2", "3.3", "3.4", "3.5", "3.6"],
  ...["4.1", "4.2", "4.3", "4.4", "4.5", "4.6", "4.7", "4.8", "4.9", "4.10"],
  ...["6", "7.1", "7.2", "8.1", "8.2", "8.3"],
];

type Verdict = "caught" | "SURVIVED" | "SOURCE NOT FOUND" | "NO SUCH TEST" | "NO VERDICT";

async function judge(sandbox: Sandbox, mutation: Mutation): Promise<Verdict> {
  const undo = await sandbox.mutate(mutation.file, mutation.search, mutation.replace);
  if (undo === undefined) return "SOURCE NOT FOUND";
  try {
    const ran = await sandbox.run(mutation.test, [mutation.caughtBy]);
    if (ran === undefined) return "NO VERDICT";
    if (ran.length === 0) return "NO SUCH TEST";
    return ran.some(({ passed }) => !passed) ? "caught" : "SURVIVED";
  } finally {
    await undo();
  }
}

/** What keeps the unbroken copy from being a fair start for a file's mutations: tests that are missing, or fail anyway. */
async function unfair(sandbox: Sandbox, file: string, names: readonly string[]): Promise<string[]> {
  const ran = await sandbox.run(file, names);
  if (ran === undefined) return [`test/${file} could not be run without a mutation`];
  const failing = ran.filter(({ passed }) => !passed).map(({ name }) => `fails without a mutation: ${name}`);
  const missing = names
    .filter((start) => !ran.some(({ name }) => name.startsWith(start)))
    .map((start) => `there is no such test in ${file}: ${start}`);
  return [...failing, ...missing];
}

/** Gives every item to the next sandbox that is free. */
async function spread<Item, Result>(
  sandboxes: readonly Sandbox[],
  items: readonly Item[],
  work: (sandbox: Sandbox, item: Item) => Promise<Result>,
): Promise<Map<Item, Result>> {
  const waiting = [...items];
  const results = new Map<Item, Result>();
  const take = async (sandbox: Sandbox) => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      results.set(next, await work(sandbox, next));
    }
  };
  await Promise.all(sandboxes.map(take));
  return results;
}

async function main(): Promise<number> {
  const only = process.argv[2];
  const all = [...MESSAGE_MUTATIONS, ...BEHAVIOR_MUTATIONS, ...CONTROL_MUTATIONS];
  const mutations = all.filter((mutation) => only === undefined || clauseOf(mutation) === only);
  const broken = new Set(all.map(clauseOf));
  const unbroken = CLAUSES.filter((clause) => !broken.has(clause)).map(
    (clause) => `no mutation breaks clause ${clause}`,
  );
  const workers = Math.min(2, availableParallelism());
  const sandboxes = await Promise.all(Array.from({ length: workers }, () => Sandbox.create()));
  try {
    const files = [...new Set(mutations.map(({ test }) => test))];
    const fair = await spread(sandboxes, files, (sandbox, file) => {
      const names = mutations.filter(({ test }) => test === file).map(({ caughtBy }) => caughtBy);
      return unfair(sandbox, file, [...new Set(names)]);
    });
    const problems = [...unbroken, ...[...fair.values()].flat()];
    for (const problem of problems) console.log(problem);
    if (problems.length > 0) return 1;

    const verdicts = await spread(sandboxes, mutations, async (sandbox, mutation) => {
      const verdict = await judge(sandbox, mutation);
      console.log(row(mutation, verdict));
      return verdict;
    });
    const survivors = mutations.filter((mutation) => verdicts.get(mutation) !== "caught");
    console.log(`\n${mutations.length - survivors.length} of ${mutations.length} mutations caught`);
    // Once more at the end, where they are seen.
    for (const mutation of survivors) console.log(row(mutation, verdicts.get(mutation) ?? "NO VERDICT"));
    return survivors.length === 0 ? 0 : 1;
  } finally {
    await Promise.all(sandboxes.map((sandbox) => sandbox.remove()));
  }
}

function row(mutation: Mutation, verdict: Verdict): string {
  return `${clauseOf(mutation).padEnd(4)}  ${verdict.padEnd(16)}  ${mutation.name}  (${mutation.file})`;
}

process.exitCode = await main();
