import { createHash } from "node:crypto";

/** Who a task belongs to. Every look-up is by (owner, task id). */
export interface Owner {
  /** Stored in rows. At most 200 characters. */
  readonly id: string;
  readonly kind: "principal" | "session" | "local" | "anonymous";
  /** What limits count by: the owner, or the remote address of a stranger. */
  readonly limitKey: string;
}

/** An authenticated caller, as the verification hook tells it: the SDK's AuthInfo has neither issuer nor subject. */
export interface Principal {
  readonly issuer: string;
  readonly subject: string;
  /** Set it to keep the tasks of one person's different clients apart. */
  readonly client?: string;
}

/** The owner behind a principal. The parts are encoded as JSON, so that no two principals share an id. */
export function principalOwner({ issuer, subject, client }: Principal): Owner {
  const id = short(
    `principal:${JSON.stringify(client === undefined ? [issuer, subject] : [issuer, subject, client])}`,
  );
  return { id, kind: "principal", limitKey: id };
}

/** The owner of what one MCP session makes; its tasks end with the session. */
export function sessionOwner(sessionId: string, remoteAddress: string): Owner {
  return { id: short(`session:${sessionId}`), kind: "session", limitKey: `address:${remoteAddress}` };
}

/** The person at this machine: stdio, and HTTP on loopback without authentication. */
export const LOCAL_OWNER: Owner = { id: "local", kind: "local", limitKey: "local" };

/** A stranger without a session: the random task id is what they hold. Limits count by address. */
export function anonymousOwner(remoteAddress: string): Owner {
  return { id: "anonymous", kind: "anonymous", limitKey: `address:${remoteAddress}` };
}

function short(id: string): string {
  return id.length <= 200 ? id : `sha256:${createHash("sha256").update(id).digest("hex")}`;
}
