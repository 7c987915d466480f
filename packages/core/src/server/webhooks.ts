/** Webhooks of engines, beside the MCP path: hints that make a task be read sooner. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { isWorkflowError, WorkflowError } from "../contract/errors.js";
import type { TaskEngine } from "../engine/engine.js";
import { NativeCallError } from "../engine/guard.js";
import type { ServeHttpOptions } from "./http-options.js";
import { readBody } from "./read-body.js";

/** The paths that take deliveries, each for the engine of one workflow. */
export class Webhooks {
  private readonly workflows: ReadonlyMap<string, string>;
  private readonly maxBodyBytes: number;

  /** @throws WorkflowError `configuration` if a path or a workflow cannot be used */
  constructor(
    private readonly engine: TaskEngine,
    { webhooks = {}, maxBodyBytes = 4_194_304 }: Pick<ServeHttpOptions, "webhooks" | "maxBodyBytes">,
    taken: readonly string[],
  ) {
    for (const [path, name] of Object.entries(webhooks)) {
      const workflow = engine.workflows.get(name);
      const wrong =
        !path.startsWith("/") || taken.includes(path)
          ? "take another path that starts with /"
          : workflow === undefined
            ? `there is no workflow "${name}"`
            : workflow.adapter.events === undefined
              ? `the adapter of "${name}" takes no events: most need a secret to verify them with`
              : undefined;
      if (wrong !== undefined)
        throw new WorkflowError("configuration", `Webhooks cannot be taken at ${path}: ${wrong}`);
    }
    this.workflows = new Map(Object.entries(webhooks));
    this.maxBodyBytes = maxBodyBytes;
  }

  /** Answers a delivery. @returns whether the path is one for deliveries */
  serve(path: string | undefined, req: IncomingMessage, res: ServerResponse): boolean {
    const workflow = path === undefined ? undefined : this.workflows.get(path);
    if (workflow === undefined) return false;
    this.statusOf(workflow, req).then(
      (status) => res.writeHead(status, status === 405 ? { allow: "POST" } : {}).end(),
      () => res.destroy(),
    );
    return true;
  }

  /** Answers bear no words: whoever is not authentic learns nothing, and the others look at the status alone. */
  private async statusOf(workflow: string, req: IncomingMessage): Promise<number> {
    if (req.method !== "POST") return 405;
    const body = await readBody(req, this.maxBodyBytes);
    if (body === undefined) return 413;
    try {
      await this.engine.receive(workflow, { headers: singleHeaders(req), body });
      return 202;
    } catch (error) {
      const refused = error instanceof NativeCallError && error.verdict.kind === "rejected";
      this.engine.log.warn({ workflow, reason: reasonOf(error) }, "webhook not taken");
      // What is not the sender's fault may be sent again.
      return refused ? 401 : 503;
    }
  }
}

function singleHeaders(req: IncomingMessage): Record<string, string> {
  const named = Object.entries(req.headers);
  return Object.fromEntries(
    named.map(([name, value]) => [name, Array.isArray(value) ? value.join(", ") : (value ?? "")]),
  );
}

function reasonOf(error: unknown): string {
  if (error instanceof NativeCallError) return error.verdict.code;
  return isWorkflowError(error) ? error.code : "Error";
}
