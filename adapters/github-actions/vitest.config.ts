import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    // GitHub's API description takes a second to load: once per worker, not once per file.
    isolate: false,
    testTimeout: 30_000,
  },
});
