import type { Answered, GitHubApi, Repository } from "./api.js";
import { explain, refused, statusOf } from "./errors.js";
import { fields } from "./wire.js";

/** What a dispatch is made of. */
export interface Dispatch {
  readonly workflow: string;
  readonly ref: string;
  readonly inputs: Readonly<Record<string, string>>;
}

/** GitHub's answer to a dispatch it took. */
export interface Dispatched {
  /** Absent: GitHub answered 204, and the run has to be found. */
  readonly runId?: string;
  readonly url?: string;
  /** The earliest time that the run can have, by GitHub's clock, in epoch milliseconds. */
  readonly sinceMs: number;
}

const ROUTE = "/repos/{owner}/{repo}/actions/workflows/{workflow_id}/dispatches";
/** From this version on, a dispatch always answers details, and the flag that asks for them is gone. */
const ALWAYS_DETAILS = "2026-03-10";
/** `date` headers and `created_at` are cut to whole seconds. */
const CLOCK_GRAIN_MS = 2000;

/** Sends dispatches, and learns what the server knows: older GitHub Enterprise Servers refuse unknown fields. */
export class Dispatcher {
  #asksForDetails: boolean;
  #tellsIds = true;
  readonly #api: GitHubApi;

  constructor(api: GitHubApi, apiVersion: string) {
    this.#api = api;
    this.#asksForDetails = apiVersion < ALWAYS_DETAILS;
  }

  /** Whether the last accepted dispatch told the run's id. */
  get tellsIds(): boolean {
    return this.#tellsIds;
  }

  /** Sends one dispatch. A refusal (4xx) did nothing, so only that may be followed by a second, plainer one. */
  async dispatch(repository: Repository, dispatch: Dispatch, signal: AbortSignal): Promise<Dispatched> {
    if (!this.#asksForDetails) return this.#post(repository, dispatch, {}, signal);
    try {
      return await this.#post(repository, dispatch, { return_run_details: true }, signal);
    } catch (error) {
      if (!isUnexplainedRefusal(error)) throw error;
      const dispatched = await this.#post(repository, dispatch, {}, signal);
      this.#asksForDetails = false;
      return dispatched;
    }
  }

  async #post(
    repository: Repository,
    dispatch: Dispatch,
    details: { readonly return_run_details?: true },
    signal: AbortSignal,
  ): Promise<Dispatched> {
    const sentMs = Date.now();
    const body = { workflow_id: dispatch.workflow, ref: dispatch.ref, inputs: dispatch.inputs, ...details };
    const answer = await this.#send(repository, body, signal);
    const tookMs = Date.now() - sentMs;
    const sinceMs = (answer.serverTimeMs ?? Date.now()) - tookMs - CLOCK_GRAIN_MS;
    const run = fields(answer.data);
    const runId = run["workflow_run_id"];
    this.#tellsIds = runId !== undefined && runId !== null;
    if (!this.#tellsIds) return { sinceMs };
    const url = run["html_url"];
    return { runId: String(runId), ...(typeof url === "string" ? { url } : {}), sinceMs };
  }

  async #send(
    repository: Repository,
    body: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<Answered> {
    try {
      return await this.#api.send(repository, ROUTE, body, signal);
    } catch (error) {
      const status = statusOf(error);
      if (status !== 400 && status !== 422) throw error;
      // GitHub's message quotes inputs, and Octokit's error holds the whole request: neither may reach a log.
      const { code = "Unprocessable", message = "" } = explain(error) ?? {};
      throw refused(code, message);
    }
  }
}

/** 400 or 422 for none of the reasons that we know: perhaps for the field that older servers do not know. */
function isUnexplainedRefusal(error: unknown): boolean {
  return explain(error)?.code === "Unprocessable";
}
