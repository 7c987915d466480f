/** From a workflow's lines in the configuration to its adapter. */
import { createRequire } from "node:module";
import { dirname, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import {
  defineWorkflow,
  type Workflow,
  type WorkflowAdapter,
  WorkflowError,
  type WorkflowOptions,
} from "@taskferry/core";
import type { WorkflowConfiguration } from "./config.js";

/** The engines that go by a short name. */
const OURS: Readonly<Record<string, { readonly package: string; readonly factory: string }>> = {
  process: { package: "@taskferry/process", factory: "localProcess" },
  "step-functions": { package: "@taskferry/step-functions", factory: "stepFunctions" },
  "github-actions": { package: "@taskferry/github-actions", factory: "githubActions" },
  "google-workflows": { package: "@taskferry/google-workflows", factory: "googleWorkflows" },
};

/** @param configPath modules and packages are looked for from here @throws WorkflowError `configuration` */
export async function loadWorkflow(configured: WorkflowConfiguration, configPath: string): Promise<Workflow> {
  const { name, engine, factory, with: options, ...rest } = configured;
  const adapter = await makeAdapter(name, engine, factory, options, configPath);
  const given = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined));
  return defineWorkflow({ name, adapter, ...given } as WorkflowOptions);
}

async function makeAdapter(
  name: string,
  engine: string,
  factory: string | undefined,
  options: Record<string, unknown>,
  configPath: string,
): Promise<WorkflowAdapter> {
  const ours = OURS[engine];
  const wanted = factory ?? ours?.factory;
  const module = await load(name, ours?.package ?? engine, configPath);
  const make = wanted === undefined ? onlyFunction(module) : module[wanted];
  if (typeof make !== "function") {
    const functions = Object.keys(module).filter((key) => typeof module[key] === "function");
    throw wrong(
      name,
      `say which function of "${engine}" makes the adapter with factory: ${functions.join(", ") || "(it exports none)"}`,
    );
  }
  try {
    return (await make(options)) as WorkflowAdapter;
  } catch (cause) {
    throw wrong(name, cause instanceof Error ? cause.message : "the factory failed", cause);
  }
}

async function load(name: string, specifier: string, configPath: string): Promise<Record<string, unknown>> {
  const folder = dirname(resolve(configPath));
  const isFile = specifier.startsWith(".") || specifier.startsWith("/");
  // A package is taken from where the configuration lives, so that it need not be installed beside this command.
  const places = isFile ? [] : [resolve(folder, "noop.js"), import.meta.filename];
  for (const place of places) {
    try {
      return await import(pathToFileURL(createRequire(place).resolve(specifier)).href);
    } catch (error) {
      if (!isMissing(error))
        throw wrong(name, `"${specifier}" cannot be loaded: ${(error as Error).message}`, error);
    }
  }
  if (!isFile) {
    const isOurs = Object.values(OURS).some((engine) => engine.package === specifier);
    const others = isOurs ? "" : `. Or did you mean one of ${Object.keys(OURS).join(", ")}?`;
    throw wrong(name, `"${specifier}" is not installed: npm install ${specifier}${others}`);
  }
  try {
    return await import(pathToFileURL(resolve(folder, specifier)).href);
  } catch (cause) {
    throw wrong(name, `"${specifier}" cannot be loaded: ${(cause as Error).message}`, cause);
  }
}

function isMissing(error: unknown): boolean {
  const { code } = error as { code?: string };
  return code === "MODULE_NOT_FOUND" || code === "ERR_MODULE_NOT_FOUND";
}

function onlyFunction(module: Record<string, unknown>): unknown {
  const functions = Object.values(module).filter((value) => typeof value === "function");
  return functions.length === 1 ? functions[0] : undefined;
}

function wrong(name: string, what: string, cause?: unknown): WorkflowError {
  return new WorkflowError(
    "configuration",
    `Workflow "${name}": ${what}`,
    cause === undefined ? {} : { cause },
  );
}
