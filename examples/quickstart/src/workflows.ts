import { fileURLToPath } from "node:url";
import { defineWorkflow, type Workflow } from "@taskferry/core";
import { localProcess } from "@taskferry/process";
import { z } from "zod";

const script = (name: string) => fileURLToPath(new URL(`../scripts/${name}`, import.meta.url));

/** Three local commands as tools. `stateDir` is where their runs live, so that they outlive this server. */
export function workflows(stateDir: string): Workflow[] {
  return [
    defineWorkflow({
      name: "check_types",
      title: "Check types",
      description: "Type-checks this repository's core package",
      adapter: localProcess({
        command: [process.execPath, script("check-types.mjs")],
        stateDir,
      }),
      pollMs: 500,
    }),
    defineWorkflow({
      name: "count_words",
      title: "Count words",
      description: "Counts the words of text files, slowly, and tells how far it is",
      input: z.object({ files: z.array(z.string()).min(1).describe("Paths of the files") }),
      output: z.object({ files: z.number(), words: z.number() }),
      adapter: localProcess({
        command: ["sh", script("count-words.sh"), "{{files...}}"],
        stateDir,
      }),
      pollMs: 250,
    }),
    defineWorkflow({
      name: "publish",
      title: "Publish",
      description: "Publishes a package, after asking under which version",
      input: z.object({ name: z.string().regex(/^[a-z][a-z0-9-]*$/) }),
      adapter: localProcess({ command: ["sh", script("publish.sh"), "{{name}}"], stateDir }),
      pollMs: 250,
    }),
  ];
}
