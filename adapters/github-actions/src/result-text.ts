import type { JobCounts, JobResult, RunResult } from "./result-schema.js";

/** Rows of the table; failed jobs come first. */
const MAX_ROWS = 50;
const MAX_ITEMS = 20;

/** A finished run in words, for people and models. */
export function resultText(result: RunResult): string {
  return [
    heading(result),
    jobTable(result),
    failedSteps(result),
    annotations(result),
    ...result.logs.map(({ job, text, truncated }) => {
      const what = truncated ? "the lines up to its last error" : "all of it";
      return `Log of ${job} (${what}):\n${fenced(text)}`;
    }),
    artifacts(result),
    result.notes.length === 0 ? "" : `Missing here:\n${bullets(result.notes)}`,
  ]
    .filter((part) => part !== "")
    .join("\n\n");
}

/** One line about how the jobs of a run ended. */
export function countsText(counts: JobCounts): string {
  const { total, succeeded, failed, cancelled, skipped, other } = counts;
  const parts = [
    [failed, "failed"],
    [succeeded, "succeeded"],
    [cancelled, "cancelled"],
    [skipped, "skipped"],
    [other, "without a conclusion"],
  ] as const;
  const named = parts.filter(([count]) => count > 0).map(([count, word]) => `${count} ${word}`);
  return total === 0 ? "no jobs" : `${total} ${total === 1 ? "job" : "jobs"}: ${named.join(", ")}`;
}

/** One line about what failed. */
export function failureMessage(result: RunResult): string {
  const failed = result.jobs.filter((job) => job.failedSteps.length > 0);
  const first = failed[0];
  const where = first === undefined ? "" : `; first in ${first.name} / ${first.failedSteps[0]}`;
  const why =
    result.conclusion === "startup_failure"
      ? " (the workflow file is invalid at this ref, or no job could begin)"
      : "";
  return `The run ended with ${result.conclusion}${why}: ${countsText(result.jobCounts)}${where}.`;
}

function heading(result: RunResult): string {
  const where = `${result.branch ?? "no branch"} at ${result.sha.slice(0, 7)}`;
  const attempt = result.attempt > 1 ? `, attempt ${result.attempt}` : "";
  const skipped = result.conclusion === "skipped" ? " Every job was skipped: nothing was done." : "";
  return (
    `${result.title} (${result.workflow} on ${where}${attempt}): ${result.conclusion} ` +
    `after ${duration(result.durationMs)}; ${countsText(result.jobCounts)}.${skipped}\n${result.url}`
  );
}

function jobTable({ jobs }: RunResult): string {
  if (jobs.length === 0) return "";
  const rows = jobs.slice(0, MAX_ROWS).map(({ name, conclusion, durationMs }: JobResult) => {
    const time = durationMs === null ? "" : duration(durationMs);
    return `| ${name.replaceAll("|", "\\|")} | ${conclusion ?? ""} | ${time} |`;
  });
  const more = jobs.length > rows.length ? `\n(${jobs.length - rows.length} more jobs)` : "";
  return `| Job | Conclusion | Time |\n|---|---|---|\n${rows.join("\n")}${more}`;
}

function failedSteps({ jobs }: RunResult): string {
  const steps = jobs.flatMap((job) => job.failedSteps.map((step) => `${job.name} / ${step}`));
  return steps.length === 0 ? "" : `Failed steps:\n${bullets(steps)}`;
}

function annotations(result: RunResult): string {
  const lines = result.annotations.map(({ level, path, line, title, message }) => {
    const what = title === null || title === "" ? message : `${title}: ${message}`;
    return `${level} at ${path}:${line}: ${what}`;
  });
  return lines.length === 0 ? "" : `Annotations:\n${bullets(lines)}`;
}

function artifacts(result: RunResult): string {
  const lines = result.artifacts.map(({ name, sizeBytes, expired, url }) =>
    expired ? `${name} (expired)` : `${name} (${sizeBytes} bytes): ${url}`,
  );
  return lines.length === 0 ? "" : `Artifacts:\n${bullets(lines)}`;
}

function bullets(lines: readonly string[]): string {
  const more = lines.length - MAX_ITEMS;
  const shown = lines.slice(0, MAX_ITEMS).map((line) => `- ${line}`);
  return [...shown, ...(more > 0 ? [`- and ${more} more`] : [])].join("\n");
}

/** A fence that the text cannot close. */
function fenced(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`{3,}/g)].map(([ticks]) => ticks.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}\n${text}\n${fence}`;
}

function duration(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60
    ? `${minutes} min ${seconds % 60} s`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
