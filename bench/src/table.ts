/** What the bench prints: each number beside its baseline of the same run, and its aim. */

export interface Line {
  readonly what: string;
  readonly value: string;
  readonly baseline?: string;
  /** `value / baseline`, or whatever the aim is about. */
  readonly ratio?: number;
  readonly aim?: { readonly atLeast?: number; readonly atMost?: number };
}

const lines: Line[] = [];

export function report(line: Line): void {
  lines.push(line);
  console.error(`  ${line.what}: ${line.value}`);
}

/** Prints the table. @returns how many lines miss their aim */
export function printTable(noise: number): number {
  const rows = lines.map(({ what, value, baseline, ratio, aim }) => [
    what,
    value,
    baseline ?? "",
    ratio === undefined ? "" : ratio.toFixed(2),
    aim === undefined ? "" : `${aim.atLeast === undefined ? "≤" : "≥"} ${aim.atLeast ?? aim.atMost}`,
    verdict(ratio, aim),
  ]);
  const head = ["what", "measured", "baseline in this run", "ratio", "aim", ""];
  const widths = head.map((title, i) => Math.max(title.length, ...rows.map((row) => row[i]?.length ?? 0)));
  const print = (row: readonly string[]) =>
    console.log(`| ${row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join(" | ")} |`);
  print(head);
  console.log(`|${widths.map((width) => "-".repeat(width + 2)).join("|")}|`);
  for (const row of rows) print(row);
  console.log(
    `\nNode ${process.version}, noise of this machine (the same loop, five times): ±${(noise * 100).toFixed(0)} %`,
  );
  return lines.filter(({ ratio, aim }) => verdict(ratio, aim) === "below").length;
}

function verdict(ratio: number | undefined, aim: Line["aim"]): string {
  if (ratio === undefined || aim === undefined) return "";
  const good =
    (aim.atLeast === undefined || ratio >= aim.atLeast) && (aim.atMost === undefined || ratio <= aim.atMost);
  return good ? "ok" : "below";
}

/** How much the same work varies here: half the spread over the mean. */
export function measureNoise(): number {
  const loops = Array.from({ length: 8 }, () => {
    const started = performance.now();
    let x = 0;
    for (let i = 0; i < 2e7; i++) x = (x * 31 + i) | 0;
    return performance.now() - started + (x === 1 ? 1 : 0);
  });
  // The first are compiled while they run.
  const times = loops.slice(3);
  const mean = times.reduce((sum, time) => sum + time, 0) / times.length;
  return (Math.max(...times) - Math.min(...times)) / 2 / mean;
}

/** Operations per second, over at least `forMs`, after a warm-up of a fifth of it. */
export async function rate(forMs: number, operation: (i: number) => unknown): Promise<number> {
  let i = 0;
  const until = async (limitMs: number) => {
    const started = performance.now();
    const first = i;
    while (performance.now() - started < limitMs) for (let k = 0; k < 16; k++) await operation(i++);
    return ((i - first) / (performance.now() - started)) * 1000;
  };
  await until(forMs / 5);
  return until(forMs);
}

export function perSecond(value: number): string {
  return `${Math.round(value).toLocaleString("en-US")}/s`;
}

export function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}
