/**
 * Waits for a promise, at most this long. Never throws.
 * @returns what it has come to; `undefined` if that took longer, or it was rejected
 */
export async function withTimeout<T>(promise: Promise<T>, limitMs: number): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, limitMs, undefined);
  });
  const outcome = await Promise.race([promise.catch(() => undefined), limit]);
  clearTimeout(timer);
  return outcome;
}
