import type { IncomingMessage } from "node:http";

/** @returns the whole body, or `undefined` if it is larger than the limit or was cut off */
export function readBody(req: IncomingMessage, limit: number): Promise<Buffer | undefined> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    req.on("data", (chunk: Buffer) => {
      size += chunk.length;
      // Read on, but keep nothing: a client hears its answer only once it has been heard out.
      if (size > limit) chunks.length = 0;
      else chunks.push(chunk);
      if (size > limit * 16) resolve(undefined);
    });
    req.on("end", () => {
      const [first] = chunks;
      const whole = chunks.length === 1 && first !== undefined ? first : Buffer.concat(chunks);
      resolve(size > limit ? undefined : whole);
    });
    req.on("error", reject);
    req.on("close", () => resolve(undefined));
  });
}
