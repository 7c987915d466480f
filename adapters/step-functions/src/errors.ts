import { EngineError, type ErrorVerdict, isEngineError } from "@taskferry/core";

type Known = readonly [kind: ErrorVerdict["kind"], message: string];

const NO_CREDENTIALS: Known = ["retry", "The server's AWS credentials have expired or cannot be loaded."];
const BAD_CREDENTIALS: Known = ["rejected", "AWS does not accept the server's credentials."];
const UNREACHABLE: Known = ["retry", "AWS Step Functions cannot be reached."];

/**
 * What each error of Step Functions, of the credentials and of the network means, by `name` or, for Node's own, by
 * `code`. Everything else is ambiguous.
 * @see https://docs.aws.amazon.com/step-functions/latest/apireference/CommonErrors.html
 */
export const VERDICTS: Readonly<Record<string, Known>> = {
  AccessDeniedException: ["rejected", "The server's AWS role may not do this."],
  ActivityDoesNotExist: ["rejected", "The activity does not exist."],
  ConflictException: ["retry", "The state machine is being changed at this moment."],
  ExecutionAlreadyExists: ["rejected", "Another execution has this name."],
  InvalidArn: ["rejected", "AWS does not accept the ARN."],
  InvalidExecutionInput: ["rejected", "AWS does not accept the input as JSON."],
  InvalidName: ["rejected", "AWS does not accept the execution's name."],
  InvalidOutput: ["rejected", "AWS does not accept the answer as JSON."],
  KmsAccessDeniedException: ["rejected", "The server's AWS role may not use the state machine's KMS key."],
  KmsInvalidStateException: ["rejected", "The state machine's KMS key is disabled or deleted."],
  ResourceNotFound: ["rejected", "The resource does not exist."],
  StateMachineDeleting: ["rejected", "The state machine is being deleted."],
  StateMachineDoesNotExist: ["rejected", "The state machine does not exist."],
  StateMachineTypeNotSupported: [
    "rejected",
    'The state machine has another type: `type` must be "EXPRESS" for an Express one and "STANDARD" for a Standard one.',
  ],
  ValidationException: ["rejected", "AWS finds the request invalid."],

  ActivityWorkerLimitExceeded: ["retry", "Too many workers poll this activity."],
  ExecutionLimitExceeded: ["retry", "Too many executions run in this AWS account."],
  KmsThrottlingException: ["retry", "AWS KMS is throttling."],
  RequestLimitExceeded: ["retry", "AWS Step Functions is throttling."],
  ServiceQuotaExceededException: ["retry", "A quota of this AWS account is used up."],
  Throttling: ["retry", "AWS Step Functions is throttling."],
  ThrottlingException: ["retry", "AWS Step Functions is throttling."],
  TooManyRequestsException: ["retry", "AWS Step Functions is throttling."],

  ExecutionDoesNotExist: ["gone", "The execution does not exist."],
  InvalidToken: ["gone", "The question's task token is not valid any more."],
  TaskDoesNotExist: ["gone", "The question's task does not exist any more."],
  TaskTimedOut: ["gone", "The question was answered elsewhere, timed out, or its execution has ended."],

  CredentialsProviderError: NO_CREDENTIALS,
  ExpiredToken: NO_CREDENTIALS,
  ExpiredTokenException: NO_CREDENTIALS,
  RequestExpired: ["retry", "The request was too old when it reached AWS: is the server's clock right?"],
  IncompleteSignature: BAD_CREDENTIALS,
  InvalidClientTokenId: BAD_CREDENTIALS,
  InvalidSignatureException: BAD_CREDENTIALS,
  MissingAuthenticationToken: BAD_CREDENTIALS,
  OptInRequired: BAD_CREDENTIALS,
  SignatureDoesNotMatch: BAD_CREDENTIALS,
  UnrecognizedClientException: BAD_CREDENTIALS,

  // These connections never stood, so nothing was sent.
  ECONNREFUSED: UNREACHABLE,
  EAI_AGAIN: UNREACHABLE,
  EHOSTUNREACH: UNREACHABLE,
  ENETUNREACH: UNREACHABLE,
  ENOTFOUND: UNREACHABLE,
};

const THROTTLES = new Set([
  "KmsThrottlingException",
  "RequestLimitExceeded",
  "Throttling",
  "ThrottlingException",
  "TooManyRequestsException",
]);

/** The name that the service gave an error, or Node's code of a network error. */
export function errorCode(error: unknown): string {
  const { name, code } = (error ?? {}) as { readonly name?: unknown; readonly code?: unknown };
  if (typeof name === "string" && Object.hasOwn(VERDICTS, name)) return name;
  if (typeof code === "string") return code;
  return typeof name === "string" ? name : "Error";
}

/** Whether the service wants fewer requests. */
export function isThrottle(error: unknown): boolean {
  return THROTTLES.has(errorCode(error));
}

/** The verdict on an error of the SDK. The raw message stays out of it: it may quote inputs. */
export function explainSfn(error: unknown): ErrorVerdict {
  if (isEngineError(error)) return error.verdict;
  const code = errorCode(error);
  const known = Object.hasOwn(VERDICTS, code) ? VERDICTS[code] : undefined;
  if (known !== undefined) return { kind: known[0], code, message: known[1] };
  return { kind: "ambiguous", code, message: `AWS Step Functions did not answer as expected (${code}).` };
}

/** A refusal without AWS's own words: they may quote the input or the answer that was refused. */
export function discreet(error: unknown): unknown {
  const verdict = explainSfn(error);
  return verdict.kind === "rejected" && !isEngineError(error)
    ? new EngineError({ message: "AWS refused.", ...verdict }, error)
    : error;
}
