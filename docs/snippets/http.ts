import { type Principal, serveHttp, type TaskEngine } from "@taskferry/core";

declare const engine: TaskEngine;
declare function verifyToken(token: string): Promise<{ iss: string; sub: string } | undefined>;

// #region http
const server = await serveHttp(engine, {
  name: "reports",
  version: "1.0.0",
  host: "0.0.0.0",
  port: 8080,
  allowedHosts: ["mcp.example.com"],
  async verify(token): Promise<Principal | undefined> {
    const claims = await verifyToken(token);
    return claims && { issuer: claims.iss, subject: claims.sub };
  },
});
console.error(`Serving MCP at ${server.url}`);
// #endregion http
