/** Stands between the adapter and Restate, for what a healthy server on the same machine never does. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

export interface Faults {
  network?: "hanging" | "broken" | { readonly retryAfterMs: number };
  losesNextStart?: boolean;
  /** Told in place of `running` and `suspended`. */
  word?: string;
}

export interface FaultyProxy {
  readonly url: string;
  close(): void;
}

/** Takes only requests that carry the token. */
export async function faultyProxy(target: string, token: string, faults: Faults): Promise<FaultyProxy> {
  const server = createServer((req, res) => {
    forward(req, res, target, token, faults).catch(() => res.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

async function forward(
  req: IncomingMessage,
  res: ServerResponse,
  target: string,
  token: string,
  faults: Faults,
): Promise<void> {
  const body = await text(req);
  const { network } = faults;
  if (network === "hanging") return;
  if (network === "broken") return void res.destroy();
  if (network !== undefined) {
    return void res.writeHead(429, { "retry-after": String(network.retryAfterMs / 1000) }).end();
  }
  if (req.headers.authorization !== `Bearer ${token}`) return void res.writeHead(401).end();
  const answer = await fetch(target + req.url, {
    method: req.method ?? "GET",
    headers: {
      accept: "application/json",
      "content-type": req.headers["content-type"] ?? "application/json",
    },
    ...(body !== "" && { body }),
  });
  let said = await answer.text();
  if (faults.losesNextStart && req.url?.endsWith("/send")) {
    faults.losesNextStart = false;
    return void res.destroy();
  }
  if (faults.word !== undefined && req.url === "/query") {
    said = said.replace(/"status":"(?:running|suspended)"/, `"status":"${faults.word}"`);
  }
  res.writeHead(answer.status, { "content-type": "application/json" }).end(said);
}
