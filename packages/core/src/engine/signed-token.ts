/** Opaque tokens that clients carry for us: cursors and request states. Tamper-evident and bound to their owner. */
import { createHmac, timingSafeEqual } from "node:crypto";
import type { Json } from "../contract/json.js";

/** @param purpose keeps a token of one kind from being used as another */
export function seal(secret: Uint8Array, purpose: string, owner: string, payload: Json): string {
  const body = Buffer.from(JSON.stringify(payload)).toString("base64url");
  return `${body}.${mac(secret, purpose, owner, body).toString("base64url")}`;
}

/** @returns the payload, or `undefined` for anything that `seal` has not made for this purpose and owner. */
export function unseal(secret: Uint8Array, purpose: string, owner: string, token: string): Json | undefined {
  const dot = token.indexOf(".");
  if (dot < 0 || token.length > 65_536) return undefined;
  const body = token.slice(0, dot);
  const expected = mac(secret, purpose, owner, body);
  const given = Buffer.from(token.slice(dot + 1), "base64url");
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined;
  return JSON.parse(Buffer.from(body, "base64url").toString("utf8")) as Json;
}

function mac(secret: Uint8Array, purpose: string, owner: string, body: string): Buffer {
  return createHmac("sha256", secret)
    .update(JSON.stringify([purpose, owner, body]))
    .digest();
}
