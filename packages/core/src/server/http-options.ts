/** What a server over Streamable HTTP can be told. */
import type { Principal } from "../contract/owner.js";
import type { AttachOptions } from "./attach.js";
import type { ServerInfo } from "./make-server.js";
import type { SessionOptions } from "./sessions.js";

/** Options of `serveHttp`. */
export interface ServeHttpOptions extends ServerInfo, Pick<AttachOptions, "companions" | "inlineWaitMs"> {
  /** @default 0: a free one */
  readonly port?: number;
  /** @default "127.0.0.1" */
  readonly host?: string;
  /** @default "/mcp" */
  readonly path?: string;
  /**
   * Verifies a bearer token and tells who it stands for; `undefined` or an error refuses it. With it, every request
   * needs a token, and tasks belong to the principal. Without it, only loopback is served, and nothing that a proxy has
   * sent on, unless `allowAnonymous`.
   */
  readonly verify?: (token: string) => Promise<Principal | undefined> | Principal | undefined;
  /** Serve strangers beyond loopback: ids are random, nothing is listed, limits count by address. @default false */
  readonly allowAnonymous?: boolean;
  /** Hostnames that the `Host` header may name. @default the loopback names; needed when `host` is another */
  readonly allowedHosts?: readonly string[];
  /** Hostnames that the `Origin` header of browsers may name. @default the loopback names */
  readonly allowedOrigins?: readonly string[];
  /** Sessions for 2025-era clients that initialize. @default `{ max: 1000, idleMs: 1800000 }` */
  readonly sessions?: Partial<SessionOptions>;
  /** The largest request body, in bytes. @default 4194304 */
  readonly maxBodyBytes?: number;
  /**
   * Paths that take an engine's webhooks, each with a workflow on that engine: its adapter verifies the signature, and
   * the deliveries wake all tasks of the engine that they are about. They need no bearer token.
   * @example { "/webhooks/github": "run_ci" }
   */
  readonly webhooks?: Readonly<Record<string, string>>;
  /** The metadata URL that a 401 names (RFC 9728). */
  readonly resourceMetadataUrl?: string;
}
