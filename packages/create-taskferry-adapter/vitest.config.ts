import { defineConfig } from "vitest/config";

// The template's own tests run where it lies as well: it is what docs/write-an-adapter.md shows.
export default defineConfig({ test: { include: ["test/**/*.test.ts", "template/test/**/*.test.ts"] } });
