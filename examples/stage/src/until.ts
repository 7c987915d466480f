/**
 * Asks again until the answer satisfies.
 * @param limitMs how long, in milliseconds. @default 60_000
 * @throws with the last answer, when the time is over
 */
export async function until<T>(
  what: string,
  ask: () => T | Promise<T>,
  good: (value: T) => boolean,
  limitMs = 60_000,
): Promise<T> {
  const deadline = Date.now() + limitMs;
  for (;;) {
    const value = await ask();
    if (good(value)) return value;
    if (Date.now() > deadline)
      throw new Error(`${what} did not come within ${limitMs} ms: ${JSON.stringify(value)}`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}
