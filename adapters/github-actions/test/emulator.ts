/**
 * `emulate`, somebody else's GitHub, with one workflow in it. It takes no workflow by seed or by route, so one is put
 * into its store, which its own plugin hands out when it is seeded.
 */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { createEmulator } from "emulate";

export const EMULATOR_TOKEN = "emulator_token";

interface Collection {
  all(): readonly { readonly id: number; readonly name?: string }[];
  insert(row: object): { readonly id: number };
  update(id: number, row: object): void;
}

interface Plugin {
  readonly githubPlugin: { seed(store: unknown, baseUrl: string): void };
  getGitHubStore(store: unknown): Record<"repos" | "workflows" | "workflowRuns", Collection>;
}

/** Starts one with the repository `octo/hello` and the workflow `ci.yml`. */
export async function startEmulator() {
  const plugin = await loadPlugin();
  const { seed } = plugin.githubPlugin;
  let store: unknown;
  plugin.githubPlugin.seed = (seeded, baseUrl) => {
    store = seeded;
    seed(seeded, baseUrl);
  };
  const emulator = await createEmulator({
    service: "github",
    port: 0,
    seed: {
      tokens: { [EMULATOR_TOKEN]: { login: "octo", scopes: ["repo", "workflow"] } },
      github: {
        users: [{ login: "octo" }],
        repos: [{ owner: "octo", name: "hello", auto_init: true }],
      },
    },
  }).finally(() => {
    plugin.githubPlugin.seed = seed;
  });
  const { repos, workflows, workflowRuns } = plugin.getGitHubStore(store);
  const repository = repos.all().find(({ name }) => name === "hello");
  workflows.insert({
    node_id: "W_1",
    repo_id: repository?.id,
    name: "CI",
    path: ".github/workflows/ci.yml",
    state: "active",
  });
  const finish = (runId: string, conclusion: string) =>
    workflowRuns.update(Number(runId), { status: "completed", conclusion });
  return { url: emulator.url, finish, close: () => emulator.close() };
}

/** The module inside the package that holds its GitHub. Its name changes with every build. */
async function loadPlugin(): Promise<Plugin> {
  const folder = dirname(fileURLToPath(import.meta.resolve("emulate")));
  const name = readdirSync(folder).find(
    (file) =>
      file.endsWith(".js") && readFileSync(join(folder, file), "utf8").includes("  getGitHubStore,\n"),
  );
  if (name === undefined) throw new Error("emulate has no GitHub inside: another version than 0.12.2?");
  return import(pathToFileURL(join(folder, name)).href);
}
