/** The `grpc-status-details-bin` of a refusal that says when to come back. */
import { protobuf } from "google-gax";

/**
 * `google.rpc.Status` with one `google.rpc.RetryInfo`.
 * @see https://github.com/googleapis/googleapis/blob/master/google/rpc/error_details.proto
 */
const { root } = protobuf.parse(
  `
  syntax = "proto3";
  message Any { string type_url = 1; bytes value = 2; }
  message Status { int32 code = 1; string message = 2; repeated Any details = 3; }
  message Duration { int64 seconds = 1; int32 nanos = 2; }
  message RetryInfo { Duration retry_delay = 1; }
`,
  { keepCase: true },
);

export function retryDetails(code: number, message: string, delaySeconds: number): Buffer {
  const seconds = Math.floor(delaySeconds);
  const retry_delay = { seconds, nanos: Math.round((delaySeconds - seconds) * 1e9) };
  const value = encode("RetryInfo", { retry_delay });
  const details = [{ type_url: "type.googleapis.com/google.rpc.RetryInfo", value }];
  return Buffer.from(encode("Status", { code, message, details }));
}

function encode(name: string, fields: object): Uint8Array {
  const type = root.lookupType(name);
  return type.encode(type.fromObject(fields)).finish();
}
