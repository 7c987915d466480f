/** Bearer tokens: those of an authorization server, or fixed ones. */
import { createHash, timingSafeEqual } from "node:crypto";
import type { Principal, ServeHttpOptions } from "@taskferry/core";
import { createRemoteJWKSet, jwtVerify } from "jose";
import type { HttpConfiguration } from "./config.js";

/** The verification hook for what the configuration says; `undefined`: no token is asked for. */
export function verifierFor(auth: HttpConfiguration["auth"]): ServeHttpOptions["verify"] {
  if (auth === undefined) return undefined;
  return "tokens" in auth ? fixedTokens(auth.tokens) : jsonWebTokens(auth);
}

function fixedTokens(
  tokens: readonly { token: string; subject: string }[],
): (token: string) => Principal | undefined {
  const known = tokens.map(({ token, subject }) => ({ digest: digestOf(token), subject }));
  return (token) => {
    const given = digestOf(token);
    // All are compared, each in constant time: how long a refusal takes tells nothing.
    const found = known.filter(({ digest }) => timingSafeEqual(digest, given));
    return found[0] && { issuer: "tokens", subject: found[0].subject };
  };
}

function jsonWebTokens(auth: { issuer: string; audience: string; jwksUri?: string | undefined }) {
  const keys = createRemoteJWKSet(
    new URL(auth.jwksUri ?? `${auth.issuer.replace(/\/$/, "")}/.well-known/jwks.json`),
  );
  return async (token: string): Promise<Principal | undefined> => {
    const { issuer, audience } = auth;
    const { payload } = await jwtVerify(token, keys, { issuer, audience });
    return payload.sub === undefined ? undefined : { issuer, subject: payload.sub };
  };
}

function digestOf(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}
