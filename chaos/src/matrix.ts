/** The crash matrix: every fault point, engine, generation and database. */

import { type Cell, type CellResult, playCell } from "./cell.js";
import type { Generation } from "./client.js";
import { POINTS } from "./faults.js";
import type { EngineKind } from "./file-engine.js";
import { startPostgres } from "./postgres.js";

const KINDS: readonly EngineKind[] = ["starts once", "find", "neither"];
const GENERATIONS: readonly Generation[] = ["draft", "2025-11-25", "2026-07-28"];

/** @param long all cells; otherwise each fault point with each engine, generations and databases in turn */
export async function crashMatrix(long: boolean): Promise<boolean> {
  const cells: Cell[] = [];
  let turn = 0;
  for (const point of POINTS) {
    for (const when of ["before", "after"] as const) {
      for (const kind of KINDS) {
        const fault = { point, when };
        if (long) {
          for (const generation of GENERATIONS)
            for (const database of ["SQLite", "PostgreSQL"] as const)
              cells.push({ kind, generation, database, fault });
        } else {
          const generation = GENERATIONS[turn % 3] ?? "draft";
          // One in four on PostgreSQL: 4 and 3 have no common turn.
          cells.push({ kind, generation, database: turn % 4 === 3 ? "PostgreSQL" : "SQLite", fault });
          turn += 1;
        }
      }
      turn += 1;
    }
  }
  const postgres = await startPostgres();
  const results: CellResult[] = [];
  try {
    const queue = [...cells];
    const worker = async () => {
      for (let cell = queue.shift(); cell !== undefined; cell = queue.shift()) {
        results.push(await playCell(cell, postgres.url));
      }
    };
    await Promise.all([worker(), worker(), worker()]);
  } finally {
    await postgres.stop();
  }
  return print(results);
}

function print(results: readonly CellResult[]): boolean {
  console.log(`\nCrash matrix: SIGKILL at each point, ${results.length} cells`);
  console.log(`${"point".padEnd(32)}${KINDS.map((kind) => kind.padEnd(26)).join("")}`);
  for (const point of POINTS) {
    for (const when of ["before", "after"]) {
      const cellsOf = (kind: EngineKind) =>
        results.filter(
          ({ cell }) => cell.fault.point === point && cell.fault.when === when && cell.kind === kind,
        );
      const columns = KINDS.map((kind) => {
        const all = cellsOf(kind);
        const good = all.filter(({ problems }) => problems.length === 0);
        const statuses = [
          ...new Set(good.map(({ status, died }) => (died ? status : `${status}, not reached`))),
        ];
        return (
          good.length === all.length
            ? statuses.join("/")
            : `${all.length - good.length} of ${all.length} WRONG`
        ).padEnd(26);
      });
      console.log(`${`${when} ${point}`.padEnd(32)}${columns.join("")}`);
    }
  }
  const wrong = results.filter(({ problems }) => problems.length > 0);
  for (const { cell, problems } of wrong) {
    const { kind, generation, database, fault } = cell;
    console.log(
      `WRONG ${fault.when} ${fault.point}, ${kind}, ${generation}, ${database}: ${problems.join("; ")}`,
    );
  }
  const unreached = POINTS.filter(
    (point) => !results.some(({ cell, died }) => cell.fault.point === point && died),
  );
  for (const point of unreached) console.log(`WRONG no cell died at "${point}"`);
  console.log(`crash matrix: ${results.length - wrong.length} cells right, ${wrong.length} wrong`);
  return wrong.length === 0 && unreached.length === 0;
}
