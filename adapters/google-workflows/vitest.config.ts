import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    // Whole servers, some of them in processes of their own, on machines that do other things, too.
    testTimeout: 30_000,
  },
});
