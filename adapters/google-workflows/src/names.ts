/** The workflow that an adapter stands before. */
export interface WorkflowName {
  /** The project id (not the number): log entries and console pages are named by it. */
  readonly project: string;
  /** A region, e.g. `"us-central1"`. */
  readonly location: string;
  readonly workflow: string;
}

const EXECUTION = /^projects\/([^/]+)\/locations\/([^/]+)\/workflows\/([^/]+)\/executions\/([^/]+)$/;
const SEGMENT = /^[A-Za-z0-9][A-Za-z0-9_.:-]*$/;

/** `projects/{project}/locations/{location}/workflows/{workflow}`. */
export function workflowResource({ project, location, workflow }: WorkflowName): string {
  return `projects/${project}/locations/${location}/workflows/${workflow}`;
}

/**
 * The execution's resource name as this adapter writes it into refs.
 *
 * Google answers with the project's number where the caller wrote its id. Refs that come from a start, a search and a
 * log entry must be equal, so only the execution's own id is taken from an answer.
 */
export function executionResource(name: WorkflowName, execution: string): string {
  return `${workflowResource(name)}/executions/${execution}`;
}

/** The last part of an execution's resource name, or of a bare id; `undefined` when it is neither. */
export function executionId(nameOrId: string): string | undefined {
  const id = EXECUTION.exec(nameOrId)?.[4] ?? nameOrId;
  return SEGMENT.test(id) ? id : undefined;
}

/** The parts of an execution's resource name. */
export function parseExecution(
  resource: string,
): (WorkflowName & { readonly execution: string }) | undefined {
  const [, project, location, workflow, execution] = EXECUTION.exec(resource) ?? [];
  if (!project || !location || !workflow || !execution) return undefined;
  return { project, location, workflow, execution };
}

/** The Google Cloud console's page of one execution, or of all executions of the workflow. */
export function consolePage({ project, location, workflow }: WorkflowName, execution?: string): string {
  const page = execution === undefined ? "executions" : `execution/${encodeURIComponent(execution)}/summary`;
  const path = `${encodeURIComponent(location)}/${encodeURIComponent(workflow)}/${page}`;
  return `https://console.cloud.google.com/workflows/workflow/${path}?project=${encodeURIComponent(project)}`;
}

/** Undoes percent-encoding; text that is not encoded properly stays as it is. */
export function decodePart(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
