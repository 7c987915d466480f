import { defineConfig } from "vitest/config";

export default defineConfig({
  // Every test starts processes, and a busy machine is slow at that. Nothing here waits for time to pass.
  test: { testTimeout: 30_000 },
});
