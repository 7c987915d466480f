/** From the end of a run to what the original request would have answered. */
import type { RunFailure, RunLink, RunOutput } from "../contract/adapter.js";
import { isJsonObject, type Json, type JsonObject } from "../contract/json.js";
import type { TaskOutcome } from "../contract/task.js";
import type { CompletedRun, Workflow } from "../contract/workflow.js";

/**
 * The outcome of a run that ended by itself. A workflow that ran and failed is a result with `isError`, never an
 * error (protocol.md, the canonical lifecycle); prompts and resources have no `isError`, so there it is an error.
 */
export function outcomeOf(workflow: Workflow, run: CompletedRun): TaskOutcome {
  if (workflow.toResult !== undefined) {
    try {
      return { kind: "result", result: checkedOutput(workflow, workflow.toResult(run)) };
    } catch (cause) {
      // The mapping is the operator's code. Its message may quote results, so the client hears only its name.
      const message = `The run ended, but its result could not be mapped (${(cause as Error).name ?? "error"} in toResult)`;
      return { kind: "error", error: { code: "contract_violated", message } };
    }
  }
  if (workflow.method === "tools/call")
    return { kind: "result", result: checkedOutput(workflow, renderResult(run)) };
  if (run.failure !== undefined) {
    return {
      kind: "error",
      error: { code: "engine_rejected", message: `${run.failure.code}: ${run.failure.message}` },
    };
  }
  const text = textOf(run.output);
  return workflow.method === "prompts/get"
    ? { kind: "result", result: asPrompt(run.output, text) }
    : { kind: "result", result: asResource(workflow, run, text) };
}

/** The default `CallToolResult`: text, links, and the value as `structuredContent`. */
export function renderResult(run: CompletedRun): JsonObject {
  const { failure } = run;
  if (failure !== undefined) {
    const head = `${failure.code}: ${failure.message}`;
    return {
      content: [
        { type: "text", text: failure.text === undefined ? head : `${head}\n\n${failure.text}` },
        ...links(failure, run.url),
      ],
      structuredContent: {
        error: {
          code: failure.code,
          message: failure.message,
          ...(run.url !== undefined && { url: run.url }),
        },
        ...(failure.value !== undefined && { detail: failure.value }),
      },
      isError: true,
    };
  }
  const value = run.output?.value;
  return {
    content: [{ type: "text", text: textOf(run.output) }, ...links(run.output ?? {}, undefined)],
    // structuredContent is an object on the wire, whatever the workflow returned.
    ...(value !== undefined &&
      value !== null && { structuredContent: isJsonObject(value) ? value : { result: value } }),
  };
}

function textOf(output: RunOutput | undefined): string {
  if (output?.text !== undefined) return output.text;
  const value = output?.value;
  if (value === undefined || value === null) return "Done. The workflow returned nothing.";
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

function links(from: Pick<RunOutput | RunFailure, "links">, url: string | undefined): Json[] {
  const run: RunLink[] =
    url === undefined ? [] : [{ uri: url, name: "run", description: "The run at the engine" }];
  return [...(from.links ?? []), ...run].map((link) => ({ type: "resource_link", ...link }));
}

function asPrompt(output: RunOutput | undefined, text: string): JsonObject {
  // A workflow may return a whole GetPromptResult.
  if (isJsonObject(output?.value) && Array.isArray(output.value.messages)) return output.value;
  return { messages: [{ role: "user", content: { type: "text", text } }] };
}

function asResource(workflow: Workflow, run: CompletedRun, text: string): JsonObject {
  if (isJsonObject(run.output?.value) && Array.isArray(run.output.value.contents)) return run.output.value;
  const kind = workflow.kind as Extract<Workflow["kind"], { kind: "resource" }>;
  const mimeType = kind.mimeType ?? (run.output?.text === undefined ? "application/json" : "text/plain");
  return { contents: [{ uri: run.uri ?? kind.uri, mimeType, text }] };
}

/** Clients refuse structuredContent that does not fit the advertised schema, so a misfit is told as an error result. */
function checkedOutput(workflow: Workflow, result: JsonObject): JsonObject {
  if (workflow.output === undefined || result.isError === true) return result;
  if (workflow.output.zod.safeParse(result.structuredContent).success) return result;
  return {
    content: [
      {
        type: "text",
        text: "The workflow ended, but what it returned does not fit its declared output schema.",
      },
      ...(Array.isArray(result.content) ? result.content : []),
    ],
    isError: true,
  };
}
