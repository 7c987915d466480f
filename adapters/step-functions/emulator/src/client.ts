import { SFNClient } from "@aws-sdk/client-sfn";

/** A client with credentials that mean nothing. */
export function clientOf(endpoint: string, maxAttempts = 3): SFNClient {
  return new SFNClient({
    endpoint,
    maxAttempts,
    region: "us-east-1",
    credentials: { accessKeyId: "test", secretAccessKey: "test" },
    disableHostPrefix: true,
  });
}

/** Makes an SQS queue. That is all that is needed of SQS, so its SDK is not: one call of its query protocol. */
export async function createQueue(endpoint: string, name: string): Promise<string> {
  const body = new URLSearchParams({ Action: "CreateQueue", QueueName: name, Version: "2012-11-05" });
  const authorization = "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/sqs/aws4_request";
  const response = await fetch(endpoint, { method: "POST", body, headers: { authorization } });
  const url = /<QueueUrl>(.*)<\/QueueUrl>/.exec(await response.text())?.[1];
  if (url === undefined) throw new Error(`SQS made no queue: HTTP ${response.status}`);
  return url;
}
