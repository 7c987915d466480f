/** What the demo prints, and whether all went well. */

const started = Date.now();
let failures = 0;

/** One line of the timeline. */
export function tell(who: string, what: string): void {
  const seconds = ((Date.now() - started) / 1000).toFixed(1).padStart(5);
  console.log(`${seconds} s  ${who.padEnd(12)} ${what}`);
}

/** Says what is, and remembers it if it is not what it should be. */
export function check(who: string, what: string, good: boolean): void {
  if (!good) failures += 1;
  tell(who, `${good ? "ok  " : "NOT "} ${what}`);
}

/** Prints the verdict. @returns the exit code */
export function verdict(): number {
  console.log(failures === 0 ? "\nAll as it should be." : `\n${failures} checks failed.`);
  return failures === 0 ? 0 : 1;
}

/** Asks again until the answer satisfies. Rejects after `limitMs`. */
export async function until<T>(
  what: string,
  ask: () => Promise<T>,
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
