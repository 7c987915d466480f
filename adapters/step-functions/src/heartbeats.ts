/**
 * Keeps task tokens alive between reads. Only a convenience of this process: after a restart the next read begins
 * again, and a token whose heartbeats stop is closed by Step Functions, as `HeartbeatSeconds` wants it.
 */
export class Heartbeats {
  readonly #timers = new Map<string, NodeJS.Timeout>();

  /** @param beat sends one heartbeat; `false`: the token is closed */
  constructor(private readonly beat: (token: string) => Promise<boolean>) {}

  /** Sends a heartbeat now, and then three per period until the token is closed. @returns whether it is open */
  async keep(token: string, periodSeconds: number): Promise<boolean> {
    if (!(await this.beat(token))) {
      this.release(token);
      return false;
    }
    if (!this.#timers.has(token)) {
      const timer = setInterval(
        () => {
          this.beat(token).then(
            (open) => open || this.release(token),
            // The network may be back in time for the next one.
            () => undefined,
          );
        },
        Math.max(300, (periodSeconds * 1000) / 3),
      );
      timer.unref();
      this.#timers.set(token, timer);
    }
    return true;
  }

  release(token: string): void {
    clearInterval(this.#timers.get(token));
    this.#timers.delete(token);
  }

  close(): void {
    for (const token of [...this.#timers.keys()]) this.release(token);
  }
}
