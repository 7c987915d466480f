/** Who owns what an MCP request makes. */
import { createHash } from "node:crypto";
import { anonymousOwner, LOCAL_OWNER, type Owner, principalOwner, sessionOwner } from "../contract/owner.js";
import type { Caller, OwnerResolver } from "./connection.js";

/** How requests without a verified principal are owned. */
export interface OwnerPolicy {
  /**
   * `local`: all belong to the person at this machine (stdio, loopback HTTP).
   * `anonymous`: to their MCP session, else to whoever holds the task's id.
   */
  readonly strangers: "local" | "anonymous";
  /** The remote address of an HTTP request, for limits. */
  readonly addressOf?: (request: Request) => string | undefined;
}

/** The resolver for a policy. */
export function ownerResolver({ strangers, addressOf }: OwnerPolicy): OwnerResolver {
  return ({ authInfo, sessionId, request }: Caller) => {
    if (request === undefined && authInfo === undefined) return LOCAL_OWNER;
    return ownerOf(strangers, (request && addressOf?.(request)) ?? "unknown", authInfo, sessionId);
  };
}

/** The owner of what an HTTP request makes. A principal comes first, always. */
export function ownerOf(
  strangers: OwnerPolicy["strangers"],
  address: string,
  authInfo?: Caller["authInfo"],
  sessionId?: string,
): Owner {
  if (authInfo !== undefined) return authenticatedOwner(authInfo);
  if (strangers === "local") return LOCAL_OWNER;
  return sessionId === undefined ? anonymousOwner(address) : sessionOwner(sessionId, address);
}

/**
 * The SDK's AuthInfo names a client, not a person: issuer and subject come in `extra`, under the names that JWTs use or
 * ours. Without a subject, the token itself is the only thing that keeps one caller from another.
 */
function authenticatedOwner(authInfo: NonNullable<Caller["authInfo"]>): Owner {
  const { extra } = authInfo;
  const subject = extra?.subject ?? extra?.sub;
  const issuer = extra?.issuer ?? extra?.iss;
  if (typeof subject === "string") {
    const client = typeof extra?.client === "string" ? { client: extra.client } : {};
    return principalOwner({ issuer: typeof issuer === "string" ? issuer : "", subject, ...client });
  }
  const token = createHash("sha256").update(authInfo.token).digest("hex");
  return principalOwner({ issuer: "token", subject: token });
}
