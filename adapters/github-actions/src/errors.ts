import { EngineError, type ErrorVerdict, isEngineError } from "@taskferry/core";
import { fields } from "./wire.js";

/** What `@octokit/request-error` throws, as far as it matters here. `status` 500 without a `response`: never connected, or cut off. */
interface RequestErrorLike extends Error {
  readonly status: number;
  readonly request?: { readonly method?: string; readonly url?: string };
  readonly response?: { readonly headers: Headers; readonly data?: unknown };
}

type Headers = Readonly<Record<string, string | number | undefined>>;

/** GitHub asks for at least a minute after a secondary limit that names no time. */
const SECONDARY_LIMIT_MS = 60_000;

/** Failures that happen before a request leaves: nothing can have been done. */
const NOT_SENT = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "UND_ERR_CONNECT_TIMEOUT",
  "ENETUNREACH",
]);

/** Whether an error came from Octokit's request layer, whichever copy of it. */
export function isRequestError(error: unknown): error is RequestErrorLike {
  return error instanceof Error && typeof (error as Partial<RequestErrorLike>).status === "number";
}

/** The HTTP status of GitHub's answer; `undefined` when there was no answer. */
export function statusOf(error: unknown): number | undefined {
  return isRequestError(error) && error.response !== undefined ? error.status : undefined;
}

/**
 * How long GitHub asks to be left alone, in milliseconds; `undefined` when this is no rate limit.
 * https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api#exceeding-the-rate-limit
 */
export function rateLimitMs(error: unknown, nowMs: number = Date.now()): number | undefined {
  const status = statusOf(error);
  if (!isRequestError(error) || (status !== 403 && status !== 429)) return undefined;
  const headers = error.response?.headers ?? {};
  const retryAfter = headers["retry-after"];
  if (retryAfter !== undefined) {
    const seconds = Number(retryAfter);
    const waitMs = Number.isNaN(seconds) ? Date.parse(String(retryAfter)) - nowMs : seconds * 1000;
    return Number.isNaN(waitMs) ? SECONDARY_LIMIT_MS : Math.max(waitMs, 1000);
  }
  if (String(headers["x-ratelimit-remaining"]) === "0") {
    const resetMs = Number(headers["x-ratelimit-reset"]) * 1000;
    // Both ends are GitHub's clock, so that ours may be wrong.
    const serverNowMs = Date.parse(String(headers["date"]));
    const waitMs = resetMs - (Number.isNaN(serverNowMs) ? nowMs : serverNowMs);
    return Number.isNaN(waitMs) ? SECONDARY_LIMIT_MS : Math.max(waitMs, 0) + 1000;
  }
  const message = String(fields(error.response?.data)["message"] ?? "");
  return status === 429 || /rate limit|abuse detection/i.test(message) ? SECONDARY_LIMIT_MS : undefined;
}

/** What an error of Octokit (or of this adapter) means for the call that threw it. */
export function explain(error: unknown): ErrorVerdict | undefined {
  if (isEngineError(error)) return error.verdict;
  if (!isRequestError(error)) return undefined;
  // An abort comes without its request: whether it was a write is not known, so it may have happened.
  const method = error.request?.method ?? "UNKNOWN";
  const path = error.request?.url ?? "";
  const status = statusOf(error);
  if (status === undefined) return explainNoAnswer(error, method);

  const retryAfterMs = rateLimitMs(error);
  if (retryAfterMs !== undefined) {
    return { kind: "retry", code: "RateLimited", message: "GitHub's rate limit is used up.", retryAfterMs };
  }
  if (status >= 500) {
    return {
      kind: method === "GET" ? "retry" : "ambiguous",
      code: `HTTP${status}`,
      message: `GitHub answered ${status}.`,
    };
  }
  switch (status) {
    case 401:
      return { kind: "rejected", code: "BadCredentials", message: "GitHub does not accept the credentials." };
    case 403:
      return {
        kind: "rejected",
        code: "Forbidden",
        message:
          "GitHub refused: the token lacks a permission that this needs, or the repository forbids it.",
      };
    case 404:
      return /\/dispatches$/.test(path)
        ? {
            kind: "rejected",
            code: "WorkflowNotFound",
            message:
              "GitHub does not find the workflow: the repository or the file on its default branch does not exist, or the token cannot see it.",
          }
        : { kind: "gone", code: "NotFound", message: "GitHub does not find it, or the token cannot see it." };
    case 409:
      return {
        kind: "rejected",
        code: "Conflict",
        message: "GitHub refused: the run is not in a state for this.",
      };
    case 410:
      return { kind: "gone", code: "Expired", message: "GitHub does not keep this any more." };
    case 400:
    case 422:
      return { kind: "rejected", ...explainUnprocessable(error) };
    default:
      return { kind: "rejected", code: `HTTP${status}`, message: `GitHub answered ${status}.` };
  }
}

function explainNoAnswer(error: RequestErrorLike, method: string): ErrorVerdict {
  const notSent = causeCodes(error).some((code) => NOT_SENT.has(code));
  return {
    kind: notSent || method === "GET" ? "retry" : "ambiguous",
    code: notSent ? "Unreachable" : "NoAnswer",
    message: notSent ? "GitHub cannot be reached." : "The connection to GitHub broke before it answered.",
  };
}

function causeCodes(error: unknown): string[] {
  const codes: string[] = [];
  for (let at: unknown = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth += 1) {
    const code = (at as NodeJS.ErrnoException).code;
    if (typeof code === "string") codes.push(code);
    // Happy eyeballs: one error per address that was tried.
    if (at instanceof AggregateError) codes.push(...at.errors.flatMap(causeCodes));
  }
  return codes;
}

/** GitHub's own words may repeat an input's value, so known refusals are said in ours. */
function explainUnprocessable(error: RequestErrorLike): { code: string; message: string } {
  const said = String(fields(error.response?.data)["message"] ?? "");
  if (/workflow_dispatch.*trigger|trigger.*workflow_dispatch/i.test(said)) {
    return {
      code: "NotDispatchable",
      message: "The workflow has no workflow_dispatch trigger at this ref: add it to the file's `on:`.",
    };
  }
  if (/no ref found/i.test(said)) {
    return { code: "RefNotFound", message: "The branch or tag does not exist in the repository." };
  }
  if (/unexpected inputs/i.test(said)) {
    return {
      code: "UnexpectedInputs",
      message: "The workflow does not declare an input that was sent (at this ref).",
    };
  }
  const required = /required input '?([\w-]+)'? not provided/i.exec(said)?.[1];
  if (required !== undefined) {
    return { code: "MissingInput", message: `The workflow requires the input "${required}".` };
  }
  if (/disabled/i.test(said)) return { code: "WorkflowDisabled", message: "The workflow is disabled." };
  return { code: "Unprocessable", message: "GitHub understood the request and refused it (422)." };
}

/** A refusal of our own: nothing was sent, and trying again will not help. */
export function refused(code: string, message: string): EngineError {
  return new EngineError({ kind: "rejected", code, message });
}
