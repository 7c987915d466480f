import type { Json, RunFailure, RunOutput } from "@taskferry/core";
import { isJsonObject } from "@taskferry/core";

/** How an execution ended, as Describe, StartSyncExecution and the history tell it. */
export interface ExecutionEnd {
  readonly status: string;
  readonly output?: string | undefined;
  readonly error?: string | undefined;
  readonly cause?: string | undefined;
  readonly executionArn: string;
  /** The state that failed. */
  readonly state?: string | undefined;
}

/** Where services put the sentence in a `cause` that is JSON: Lambda, nested executions, ECS, Batch and Glue, SDK calls. */
const CAUSE_KEYS = [
  "errorMessage",
  "ErrorMessage",
  "Cause",
  "StoppedReason",
  "StatusReason",
  "message",
  "Message",
];
const CAUSE_LIMIT = 1000;

/** The output: the whole value, and a text that is cut where people and models stop reading. */
export function outputOf(output: string | undefined, textLimit: number, url: string | undefined): RunOutput {
  if (output === undefined) return {};
  const value = parseJson(output);
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  if (text.length <= textLimit) return { value, text };
  return {
    value,
    text: `${text.slice(0, textLimit)}\n… (${text.length - textLimit} more characters: the whole value is the structured content)`,
    ...(url !== undefined && {
      links: [
        {
          uri: url,
          name: "output",
          description: "The whole output, in the AWS console",
          mimeType: "text/html",
        },
      ],
    }),
  };
}

/** The failure: AWS's error name, a sentence, and the rest of the cause. */
export function failureOf({ status, error, cause, executionArn, state }: ExecutionEnd): RunFailure {
  const code = error || (status === "TIMED_OUT" ? "States.Timeout" : "States.TaskFailed");
  const detail = cause === undefined || cause === "" ? undefined : parseJson(cause);
  const reason =
    sentenceOf(detail) ?? (status === "TIMED_OUT" ? "The execution timed out." : "No cause was given.");
  return {
    code,
    message: state === undefined ? reason : `State "${state}": ${reason}`,
    value: {
      status,
      error: code,
      ...(state !== undefined && { state }),
      ...(detail !== undefined && { cause: detail }),
      executionArn,
    },
  };
}

/** JSON, or the text itself: causes often are none, and some emulators leave string outputs unquoted. */
export function parseJson(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}

function sentenceOf(cause: Json | undefined): string | undefined {
  if (cause === undefined || cause === null) return undefined;
  const key = isJsonObject(cause) ? CAUSE_KEYS.find((name) => typeof cause[name] === "string") : undefined;
  const said = key === undefined ? cause : (cause as Record<string, string>)[key];
  // A nested execution's cause is JSON within JSON.
  if (key === "Cause" && typeof said === "string") return sentenceOf(parseJson(said));
  return (typeof said === "string" ? said : JSON.stringify(said)).slice(0, CAUSE_LIMIT);
}
