import { setTimeout as delay } from "node:timers/promises";

/** Asks again until the answer satisfies. The requirement's own time-out ends it otherwise. */
export async function until<Value>(
  what: string,
  ask: () => Promise<Value>,
  satisfies: (value: Value) => boolean,
  limitMs = 60_000,
): Promise<Value> {
  const deadline = Date.now() + limitMs;
  for (;;) {
    const value = await ask();
    if (satisfies(value)) return value;
    if (Date.now() > deadline) throw new Error(`${what} did not come within ${limitMs} ms`);
    await delay(25);
  }
}
