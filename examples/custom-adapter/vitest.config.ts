import { defineConfig } from "vitest/config";

// The adapter's own tests need its own node_modules: the demo runs them in a copy outside of this workspace.
export default defineConfig({ test: { include: [] } });
