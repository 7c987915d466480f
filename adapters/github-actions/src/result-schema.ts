import type { JsonObject } from "@taskferry/core";

/** What a finished run becomes as `structuredContent`. {@link runResultSchema} is its JSON Schema. */
export interface RunResult {
  readonly runId: string;
  readonly attempt: number;
  readonly conclusion: string;
  readonly url: string;
  readonly title: string;
  readonly workflow: string;
  readonly event: string;
  readonly branch: string | null;
  readonly sha: string;
  /** ISO 8601. */
  readonly startedAt: string;
  readonly durationMs: number;
  readonly jobCounts: JobCounts;
  /** Failed ones first; at most 300. */
  readonly jobs: readonly JobResult[];
  readonly annotations: readonly AnnotationResult[];
  readonly artifacts: readonly ArtifactResult[];
  readonly logs: readonly LogResult[];
  /** What is missing above, and why. */
  readonly notes: readonly string[];
}

export interface JobCounts {
  readonly total: number;
  readonly succeeded: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly skipped: number;
  readonly other: number;
}

export interface JobResult {
  readonly name: string;
  readonly conclusion: string | null;
  readonly url: string | null;
  readonly durationMs: number | null;
  readonly failedSteps: readonly string[];
}

export interface AnnotationResult {
  readonly job: string;
  readonly level: string;
  readonly title: string | null;
  readonly message: string;
  readonly path: string;
  readonly line: number;
}

export interface ArtifactResult {
  readonly name: string;
  readonly sizeBytes: number;
  readonly expired: boolean;
  readonly url: string;
}

export interface LogResult {
  readonly job: string;
  /** Lines that end at the job's last error. */
  readonly text: string;
  readonly truncated: boolean;
}

const string: JsonObject = { type: "string" };
const stringOrNull: JsonObject = { type: ["string", "null"] };
const integer: JsonObject = { type: "integer", minimum: 0 };
const boolean: JsonObject = { type: "boolean" };

function object(properties: JsonObject): JsonObject {
  return { type: "object", properties, required: Object.keys(properties), additionalProperties: false };
}

function list(items: JsonObject): JsonObject {
  return { type: "array", items };
}

/** JSON Schema of {@link RunResult}: use it as the tool's `outputSchema`. */
export const runResultSchema: JsonObject = object({
  runId: string,
  attempt: integer,
  conclusion: { type: "string", description: "GitHub's word, e.g. success, failure, timed_out." },
  url: string,
  title: string,
  workflow: string,
  event: string,
  branch: stringOrNull,
  sha: string,
  startedAt: { type: "string", format: "date-time" },
  durationMs: integer,
  jobCounts: object({
    total: integer,
    succeeded: integer,
    failed: integer,
    cancelled: integer,
    skipped: integer,
    other: integer,
  }),
  jobs: list(
    object({
      name: string,
      conclusion: stringOrNull,
      url: stringOrNull,
      durationMs: { type: ["integer", "null"], minimum: 0 },
      failedSteps: list(string),
    }),
  ),
  annotations: list(
    object({ job: string, level: string, title: stringOrNull, message: string, path: string, line: integer }),
  ),
  artifacts: list(object({ name: string, sizeBytes: integer, expired: boolean, url: string })),
  logs: list(object({ job: string, text: string, truncated: boolean })),
  notes: list(string),
});
