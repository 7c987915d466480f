/** Waits for a promise, at most this long. Never throws. */
export async function within(promise: Promise<unknown>, limitMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, limitMs);
  });
  await Promise.race([
    promise.then(
      () => {},
      () => {},
    ),
    limit,
  ]);
  clearTimeout(timer);
}
