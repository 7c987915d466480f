/** The configuration file: its shape, its environment variables, and what is wrong with it. */
import { readFile } from "node:fs/promises";
import { WorkflowError } from "@taskferry/core";
import { LineCounter, parseDocument } from "yaml";
import { z } from "zod";

const milliseconds = z.int().min(1);
const jsonSchema = z.looseObject({ type: z.literal("object") });

const workflow = z.strictObject({
  name: z.string(),
  title: z.string().optional(),
  description: z.string().optional(),
  /** One of ours by its short name, a package, or a module beside the configuration file (`./my-engine.js`). */
  engine: z.string(),
  /** The exported function that makes the adapter; ours need none. */
  factory: z.string().optional(),
  /** The adapter's options. */
  with: z.record(z.string(), z.unknown()).default({}),
  input: jsonSchema.optional(),
  output: jsonSchema.optional(),
  task: z.enum(["optional", "required", "forbidden"]).optional(),
  pollMs: milliseconds.optional(),
  retentionMs: milliseconds.optional(),
  onAbandon: z.enum(["continue", "stop"]).optional(),
  annotations: z.record(z.string(), z.json()).optional(),
  as: z
    .discriminatedUnion("kind", [
      z.strictObject({ kind: z.literal("tool") }),
      z.strictObject({ kind: z.literal("prompt") }),
      z.strictObject({ kind: z.literal("resource"), uri: z.string(), mimeType: z.string().optional() }),
    ])
    .optional(),
});

const http = z.strictObject({
  port: z.coerce.number().int().min(0).max(65_535).default(8765),
  host: z.string().default("127.0.0.1"),
  path: z.string().startsWith("/").default("/mcp"),
  allowedHosts: z.array(z.string()).optional(),
  allowedOrigins: z.array(z.string()).optional(),
  allowAnonymous: z.boolean().optional(),
  maxBodyBytes: z.int().min(1).optional(),
  /** Paths that take webhooks, each with the name of a workflow on that engine. */
  webhooks: z.record(z.string(), z.string()).optional(),
  auth: z
    .union([
      /** JSON Web Tokens of an authorization server. */
      z.strictObject({
        issuer: z.url(),
        audience: z.string(),
        /** Default: what the issuer's metadata names. */
        jwksUri: z.url().optional(),
      }),
      /** Fixed tokens, each with the name that its tasks belong to. */
      z.strictObject({
        tokens: z.array(z.strictObject({ token: z.string().min(16), subject: z.string().min(1) })).min(1),
      }),
    ])
    .optional(),
});

const configuration = z.strictObject({
  server: z
    .strictObject({
      name: z.string().default("taskferry"),
      title: z.string().optional(),
      version: z.string().default("1.0.0"),
      instructions: z.string().optional(),
      companions: z.boolean().optional(),
      inlineWaitMs: milliseconds.optional(),
      http: http.optional(),
    })
    .prefault({}),
  store: z
    .union([
      z.strictObject({ sqlite: z.string() }),
      z.strictObject({ postgres: z.string(), schema: z.string().optional() }),
    ])
    .optional(),
  retention: z
    .strictObject({ defaultMs: milliseconds.optional(), maxMs: milliseconds.optional() })
    .optional(),
  limits: z
    .strictObject({
      createPerMinute: z.int().min(1).optional(),
      getPerMinute: z.int().min(1).optional(),
      resultPerMinute: z.int().min(1).optional(),
      listPerMinute: z.int().min(1).optional(),
      concurrentTasks: z.int().min(1).optional(),
      blockedRequests: z.int().min(1).optional(),
    })
    .optional(),
  logLevel: z.enum(["debug", "info", "warn", "error", "silent"]).default("info"),
  workflows: z
    .array(workflow)
    .min(1)
    .superRefine((workflows, ctx) => {
      const seen = new Set<string>();
      for (const [index, { name }] of workflows.entries()) {
        if (seen.has(name)) {
          ctx.addIssue({
            code: "custom",
            path: [index, "name"],
            message: `"${name}" is taken by another workflow`,
          });
        }
        seen.add(name);
      }
    }),
});

export type Configuration = z.infer<typeof configuration>;
export type HttpConfiguration = z.infer<typeof http>;
export type WorkflowConfiguration = z.infer<typeof workflow>;

/**
 * Reads a configuration file.
 * @throws WorkflowError `configuration` naming every problem with its place, but no values: they may be secrets
 */
export async function readConfiguration(path: string, env: NodeJS.ProcessEnv): Promise<Configuration> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (cause) {
    throw new WorkflowError("configuration", `The configuration file ${path} cannot be read: is it there?`, {
      cause,
    });
  }
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines });
  const [mistake] = document.errors;
  if (mistake !== undefined) throw invalid(path, [mistake.message.split("\n")[0] ?? "it is not YAML"]);
  const missing: string[] = [];
  const value = interpolate(document.toJS(), env, missing);
  if (missing.length > 0) {
    throw invalid(
      path,
      missing.map((name) => `the environment variable ${name} is not set`),
    );
  }
  const parsed = configuration.safeParse(value);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map((issue) => {
    const place = document.getIn(issue.path, true) ?? document.getIn(issue.path.slice(0, -1), true);
    const offset = (place as { range?: [number, number, number] } | undefined)?.range?.[0];
    const line = offset === undefined ? "" : ` (line ${lines.linePos(offset).line})`;
    return `${issue.path.map(String).join(".") || "the file"}${line}: ${issue.message}`;
  });
  throw invalid(path, problems);
}

/** `${NAME}` and `${NAME:-default}` in every string; `$${` stands for the characters `${`. */
function interpolate(value: unknown, env: NodeJS.ProcessEnv, missing: string[]): unknown {
  if (typeof value === "string") {
    return value.replace(
      /\$\$(?=\{)|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g,
      (_whole, name?: string, fallback?: string) => {
        if (name === undefined) return "$";
        const given = env[name] ?? fallback;
        if (given === undefined) missing.push(name);
        return given ?? "";
      },
    );
  }
  if (Array.isArray(value)) return value.map((item) => interpolate(item, env, missing));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, interpolate(item, env, missing)]),
  );
}

function invalid(path: string, problems: readonly string[]): WorkflowError {
  return new WorkflowError(
    "configuration",
    `${path} cannot be used:\n${problems.map((problem) => `  ${problem}`).join("\n")}`,
  );
}
