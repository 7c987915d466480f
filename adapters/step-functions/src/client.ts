import { SFNClient } from "@aws-sdk/client-sfn";
import { explainSfn } from "./errors.js";

/** The part of `SFNClient` that is used, so that a client of your own fits. */
export type SfnClient = Pick<SFNClient, "send">;

/** How to reach AWS. */
export interface ConnectionOptions {
  /** Your own client, with your own credentials, retries and timeouts. It is not closed with the adapter. */
  readonly client?: SfnClient;
  /** @default the region of the ARN */
  readonly region?: string;
  /** E.g. `http://127.0.0.1:5000` for an emulator. @default what the SDK finds, `AWS_ENDPOINT_URL_SFN` included */
  readonly endpoint?: string;
}

/** For `checkOptions`. */
export const CONNECTION_OPTIONS = {
  client: true,
  region: true,
  endpoint: true,
} as const satisfies Readonly<Record<keyof ConnectionOptions, true>>;

/** A client that is made with the first call. */
export interface Connection {
  readonly client: SfnClient;
  close(): void;
}

export function connect({ client, region, endpoint }: ConnectionOptions, arnRegion?: string): Connection {
  let own: SFNClient | undefined;
  return {
    get client(): SfnClient {
      if (client !== undefined) return client;
      own ??= makeClient(region ?? arnRegion, endpoint);
      return own;
    },
    close() {
      own?.destroy();
      own = undefined;
    },
  };
}

function makeClient(region: string | undefined, endpoint: string | undefined): SFNClient {
  const named = endpoint ?? process.env.AWS_ENDPOINT_URL_SFN ?? process.env.AWS_ENDPOINT_URL;
  return new SFNClient({
    ...(region !== undefined && { region }),
    ...(endpoint !== undefined && { endpoint }),
    // StartSyncExecution goes to `sync-<host>`, and an endpoint that somebody named has no such sister.
    ...(named !== undefined && { disableHostPrefix: true }),
  });
}

/** The part of a command that lets us see each attempt of the SDK. */
interface Watched {
  readonly middlewareStack: {
    add(
      middleware: (next: (args: never) => Promise<never>) => (args: never) => Promise<never>,
      options: { readonly step: "finalizeRequest"; readonly priority: "low" },
    ): void;
  };
}

/** What became of the SDK's attempts at one call. */
export interface Attempts {
  /** Whether one of them may have got through although its response did not. */
  lost: boolean;
  /** The last error. */
  error: unknown;
}

/**
 * Watches the SDK's attempts at a call that starts something. Its last error alone does not tell whether an earlier
 * attempt got through: a lost response, then a refused connection, would look as if nothing had been sent.
 * @param retries whether the SDK may try again by itself
 */
export function watchAttempts(command: unknown, { retries }: { readonly retries: boolean }): Attempts {
  const attempts: Attempts = { lost: false, error: undefined };
  const watch = (next: (args: never) => Promise<never>) => async (args: never) => {
    try {
      return await next(args);
    } catch (error) {
      attempts.lost ||= explainSfn(error).kind === "ambiguous";
      attempts.error = error;
      // The SDK retries what it knows, and looks into causes too: this one tells it nothing.
      throw retries ? error : new Error("This call is not repeated");
    }
  };
  (command as Watched).middlewareStack.add(watch, { step: "finalizeRequest", priority: "low" });
  return attempts;
}
