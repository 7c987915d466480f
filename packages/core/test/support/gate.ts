/** What tests hold back, and clocks that they turn. */
import { onTestFinished, vi } from "vitest";

/** A promise that a test keeps. */
export interface Gate {
  readonly opened: Promise<void>;
  open(): void;
}

export function gate(): Gate {
  let open: () => void = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

/** Resolves with the gate, rejects with the signal: work that can be stopped. */
export function passes({ opened }: Gate, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    void opened.then(resolve);
  });
}

const realNow = Date.now.bind(Date);

/** Puts the clock this far ahead of real time; it goes on from there. Timers keep real time. */
export function travel(ms: number): void {
  const spy = vi.spyOn(Date, "now").mockImplementation(() => realNow() + ms);
  onTestFinished(() => spy.mockRestore());
}
