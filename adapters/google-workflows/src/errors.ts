import { EngineError, type ErrorVerdict, isEngineError, isJsonObject } from "@taskferry/core";

/** The canonical error codes by number. @see https://grpc.io/docs/guides/status-codes/ */
const GRPC_CODES = [
  "OK",
  "CANCELLED",
  "UNKNOWN",
  "INVALID_ARGUMENT",
  "DEADLINE_EXCEEDED",
  "NOT_FOUND",
  "ALREADY_EXISTS",
  "PERMISSION_DENIED",
  "RESOURCE_EXHAUSTED",
  "FAILED_PRECONDITION",
  "ABORTED",
  "OUT_OF_RANGE",
  "UNIMPLEMENTED",
  "INTERNAL",
  "UNAVAILABLE",
  "DATA_LOSS",
  "UNAUTHENTICATED",
] as const;

/** What a bare HTTP status means where the body does not name a code. @see https://google.aip.dev/193 */
const HTTP_CODES: Readonly<Record<number, string>> = {
  400: "INVALID_ARGUMENT",
  401: "UNAUTHENTICATED",
  403: "PERMISSION_DENIED",
  404: "NOT_FOUND",
  405: "UNIMPLEMENTED",
  409: "ABORTED",
  410: "NOT_FOUND",
  429: "RESOURCE_EXHAUSTED",
  499: "CANCELLED",
  500: "INTERNAL",
  501: "UNIMPLEMENTED",
  503: "UNAVAILABLE",
  504: "DEADLINE_EXCEEDED",
};

/** The connection was never made, so nothing was sent. A reset (`ECONNRESET`) does not belong here. */
const NOTHING_SENT = ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "ENETUNREACH", "EHOSTUNREACH"];

/** Quotas are counted per minute, so an immediate second try is a wasted one. */
const QUOTA_PAUSE_MS = 15_000;

const VERDICTS: Readonly<Record<string, { readonly kind: ErrorVerdict["kind"]; readonly message: string }>> =
  {
    INVALID_ARGUMENT: { kind: "rejected", message: "Google Cloud Workflows refused the request as invalid" },
    FAILED_PRECONDITION: {
      kind: "rejected",
      message: "Google Cloud Workflows refused: the state does not allow it",
    },
    OUT_OF_RANGE: { kind: "rejected", message: "Google Cloud Workflows refused the request as out of range" },
    ALREADY_EXISTS: { kind: "rejected", message: "Google Cloud Workflows refused: it exists already" },
    PERMISSION_DENIED: {
      kind: "rejected",
      message: "Google Cloud Workflows denied access: the server's account lacks a role",
    },
    UNAUTHENTICATED: {
      kind: "rejected",
      message: "Google Cloud Workflows does not accept the server's credentials",
    },
    UNIMPLEMENTED: { kind: "rejected", message: "This endpoint does not offer the call" },
    NOT_FOUND: { kind: "gone", message: "Google Cloud Workflows does not know it (any more)" },
    RESOURCE_EXHAUSTED: {
      kind: "retry",
      message: "The Google Cloud Workflows quota is used up for the moment",
    },
    UNAVAILABLE: { kind: "ambiguous", message: "Google Cloud Workflows is not available" },
    DEADLINE_EXCEEDED: { kind: "ambiguous", message: "Google Cloud Workflows did not answer in time" },
    NOT_REACHED: { kind: "retry", message: "Google Cloud Workflows could not be reached" },
  };

/**
 * The canonical code of an error from either transport: a gRPC status number, the `error.status` of a REST body, a bare
 * HTTP status, or `NOT_REACHED`. `undefined` for anything else.
 */
export function canonicalCode(error: unknown): string | undefined {
  const fields = errorFields(error);
  if (fields === undefined) return undefined;
  if (nothingWasSent(fields)) return "NOT_REACHED";
  const named = apiError(fields)?.["status"];
  if (typeof named === "string" && (GRPC_CODES as readonly string[]).includes(named)) return named;
  const status = httpStatus(fields);
  if (status !== undefined) return HTTP_CODES[status] ?? (status >= 500 ? "INTERNAL" : "INVALID_ARGUMENT");
  return typeof fields["code"] === "number" ? GRPC_CODES[fields["code"]] : undefined;
}

/** What an error of the Workflows APIs means. The message is ours: theirs may quote the request. */
export function explainError(error: unknown): ErrorVerdict | undefined {
  if (isEngineError(error)) return error.verdict;
  if (isMissingCredentials(error)) {
    return {
      kind: "rejected",
      code: "NO_CREDENTIALS",
      message: "The server has no Google Cloud credentials",
    };
  }
  const code = canonicalCode(error);
  const verdict = code === undefined ? undefined : VERDICTS[code];
  if (code === undefined || verdict === undefined)
    return code === undefined ? undefined : { kind: "ambiguous", code };
  const pauseMs = askedPauseMs(error) ?? (code === "RESOURCE_EXHAUSTED" ? QUOTA_PAUSE_MS : undefined);
  const message = `${verdict.message} (${code})`;
  return { kind: verdict.kind, code, message, ...(pauseMs !== undefined && { retryAfterMs: pauseMs }) };
}

/** A start that names a workflow which is not there: for a start, "not found" is a refusal and not a lost run. */
export function explainStart(error: unknown, workflow: string): unknown {
  if (canonicalCode(error) !== "NOT_FOUND") return discreet(error);
  const message = `There is no workflow ${workflow}`;
  return new EngineError({ kind: "rejected", code: "NOT_FOUND", message }, error);
}

/** A refusal without Google's own words: they may quote the argument or the answer that was refused. */
export function discreet(error: unknown): unknown {
  const verdict = explainError(error);
  if (verdict?.kind !== "rejected" || isEngineError(error)) return error;
  return new EngineError({ message: "Google Cloud Workflows refused", ...verdict }, error);
}

type Fields = Readonly<Record<string, unknown>>;

function errorFields(error: unknown): Fields | undefined {
  return typeof error === "object" && error !== null ? (error as Fields) : undefined;
}

function nothingWasSent(fields: Fields): boolean {
  for (let layer: Fields | undefined = fields, depth = 0; layer !== undefined && depth < 4; depth++) {
    const code: unknown = layer["code"];
    if (typeof code === "string" && NOTHING_SENT.includes(code)) return true;
    // grpc-js reports a refused connection as UNAVAILABLE and names the system error in the details only.
    const details: unknown = layer["details"];
    if (code === 14 && typeof details === "string" && details.includes("No connection established")) {
      return NOTHING_SENT.some((word) => details.includes(word));
    }
    layer = errorFields(layer["cause"] ?? (Array.isArray(layer["errors"]) ? layer["errors"][0] : undefined));
  }
  return false;
}

/** The HTTP status of a gaxios error. It is also told by the answer, when the error was built without one. */
function httpStatus(fields: Fields): number | undefined {
  const candidates = [fields["status"], errorFields(fields["response"])?.["status"], fields["code"]];
  return candidates.find(
    (status): status is number => typeof status === "number" && status >= 300 && status < 600,
  );
}

/**
 * The `error` object of a REST body. The REST fallback asks gaxios for a stream, so its errors carry the body as their
 * message and nowhere else.
 */
function apiError(fields: Fields): Fields | undefined {
  const data = errorFields(fields["response"])?.["data"];
  for (const body of [data, fields["message"]]) {
    const parsed = typeof body === "string" ? parseBody(body) : body;
    const first: unknown = Array.isArray(parsed) ? parsed[0] : parsed;
    if (isJsonObject(first) && isJsonObject(first["error"])) return first["error"];
  }
  return undefined;
}

function parseBody(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** `RetryInfo` of the status details, or the `Retry-After` header, in milliseconds. */
function askedPauseMs(error: unknown): number | undefined {
  const fields = errorFields(error);
  if (fields === undefined) return undefined;
  const details = [fields["statusDetails"], apiError(fields)?.["details"]].find(Array.isArray) ?? [];
  for (const detail of details) {
    const delay = errorFields(detail)?.["retryDelay"];
    const seconds =
      typeof delay === "string" ? Number.parseFloat(delay) : Number(errorFields(delay)?.["seconds"]);
    if (Number.isFinite(seconds)) return Math.max(0, seconds * 1000);
  }
  const headers = errorFields(fields["response"])?.["headers"];
  const after = headers instanceof Headers ? Number(headers.get("retry-after") ?? Number.NaN) : Number.NaN;
  return Number.isFinite(after) ? after * 1000 : undefined;
}

/** Credentials that are not there, or that the token endpoint no longer takes: nothing was asked of Workflows. */
function isMissingCredentials(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const answer = errorFields(errorFields(errorFields(error)?.["response"])?.["data"]);
  return (
    error.message.startsWith("Could not load the default credentials") ||
    answer?.["error"] === "invalid_grant"
  );
}
