import {
  checkOptions,
  type FindRequest,
  type Json,
  type ReadRequest,
  type RunState,
  type StartedRun,
  type StartRequest,
  type WorkflowAdapter,
} from "@taskferry/core";
import type { Repository } from "./api.js";
import { webOrigin } from "./client.js";
import { findRun, notYet, severalRuns } from "./correlate.js";
import { Dispatcher } from "./dispatch.js";
import { refused } from "./errors.js";
import { IdLessDispatches } from "./id-less.js";
import { checkInputs } from "./inputs.js";
import { COMMON_OPTIONS, type GitHubActionsOptions } from "./options.js";
import { readRun } from "./read.js";
import { type AcceptedDispatch, isKnown, type KnownRun, knownRun, parseRef, toRunRef } from "./ref.js";
import { runParts } from "./run-parts.js";
import { openSession } from "./session.js";
import { stopRun } from "./stop.js";
import { argumentsOf, REF_ARGUMENT, REPOSITORY_ARGUMENT, refOf, repositoryOf, shortRef } from "./target.js";
import type { Run } from "./wire.js";
import { apiOf, correlationInputOf, DEFAULT_API_VERSION, readTrigger, resolveRef } from "./workflow-file.js";

const APPEARS_WITHIN_MS = 600_000;
const SETTLE_MS = 10_000;
/** How wrong our clock may be when nothing but time tells which run is ours; with a key it does not matter. */
const SKEW_MS = 5000;
const SKEW_WITH_KEY_MS = 300_000;
const LOOK_AGAIN_MS = 2000;

/** A dispatch that is ready to be sent. */
interface Plan {
  readonly repository: Repository;
  readonly ref: string;
  readonly inputs: Readonly<Record<string, string>>;
  readonly correlated: boolean;
}

const OPTIONS = {
  workflow: true,
  ref: true,
  refs: true,
  inputs: true,
  correlationInput: true,
  appearsWithinMs: true,
  settleMs: true,
  ...COMMON_OPTIONS,
} as const satisfies Readonly<Record<keyof GitHubActionsOptions, true>>;

/**
 * GitHub Actions: a task is one run of a workflow that has a `workflow_dispatch` trigger.
 *
 * The native input is an object of the workflow's inputs, with `repository` (owner/name) and `git_ref` beside them where
 * those are left open.
 *
 * @throws TypeError when the options name no repository.
 */
export function githubActions(options: GitHubActionsOptions): WorkflowAdapter {
  checkOptions("githubActions", options, OPTIONS);
  if (options.repositories === undefined) repositoryOf(options, {});
  const api = apiOf(options);
  const session = openSession(api, options);
  const dispatcher = new Dispatcher(api, options.apiVersion ?? DEFAULT_API_VERSION);
  const appearsWithinMs = options.appearsWithinMs ?? APPEARS_WITHIN_MS;
  const settleMs = options.settleMs ?? SETTLE_MS;
  const idLess = new IdLessDispatches(api, { waitMs: settleMs, openForMs: appearsWithinMs });
  // The API takes the file's name, people also write its path.
  const workflow = String(options.workflow).replace(/^.*\//, "");

  async function plan(key: string, input: Json, signal: AbortSignal): Promise<Plan> {
    const args = argumentsOf(input);
    const repository = repositoryOf(options, args);
    const ref = await resolveRef(api, repository, refOf(options, args), signal);
    const trigger = await readTrigger(api, repository, workflow, ref, signal);
    const open = [
      ...(options.repositories === undefined ? [] : [REPOSITORY_ARGUMENT]),
      ...(options.refs === undefined ? [] : [REF_ARGUMENT]),
    ];
    const given = Object.fromEntries(Object.entries(args).filter(([name]) => !open.includes(name)));
    const correlation = correlationInputOf(options.correlationInput, trigger);
    if (correlation !== undefined) {
      if (given[correlation] !== undefined) {
        throw refused("UnexpectedInputs", `The input "${correlation}" is filled in by Taskferry.`);
      }
      given[correlation] = key;
    }
    const declared = options.inputs ?? trigger?.inputs;
    const known =
      declared === undefined || correlation === undefined || Object.hasOwn(declared, correlation)
        ? declared
        : { ...declared, [correlation]: { type: "string" as const, required: false } };
    const inputs = checkInputs(given, known);
    return { repository, ref, inputs, correlated: correlation !== undefined };
  }

  async function start({ key, input, signal }: StartRequest): Promise<StartedRun> {
    const { repository, ref, inputs, correlated } = await plan(key, input, signal);
    const branch = shortRef(ref);
    const send = () => dispatcher.dispatch(repository, { workflow, ref, inputs }, signal);
    const dispatched = correlated
      ? await send()
      : await idLess.dispatch(repository, { workflow, branch }, key, () => dispatcher.tellsIds, send, signal);
    const { runId, url, sinceMs, ...traces } = { before: [], seen: [], ...dispatched };
    if (runId !== undefined) {
      const started = { ref: toRunRef(knownRun(repository.owner, repository.repo, runId)), claim: runId };
      return url === undefined ? started : { ...started, url };
    }
    const owner = repository.owner.toLowerCase();
    const repo = repository.repo.toLowerCase();
    const accepted: AcceptedDispatch = { owner, repo, workflow, branch, key, correlated, sinceMs, ...traces };
    return { ref: toRunRef(accepted), url: workflowUrl(options, repository, workflow) };
  }

  /** After a start whose answer was lost: the dispatch may or may not have been accepted. */
  async function find(request: FindRequest): Promise<StartedRun | undefined> {
    const { key, input, startedAtMs, lastStartedAtMs, signal } = request;
    const { repository, ref, correlated } = await plan(key, input, signal);
    const skewMs = correlated ? SKEW_WITH_KEY_MS : SKEW_MS;
    const sinceMs = api.toServerTimeMs(startedAtMs) - skewMs;
    const search = { workflow, branch: shortRef(ref), key, correlated, sinceMs };
    const found = await findRun(api, repository, search, request.isClaimed, signal);
    const ageMs = Date.now() - lastStartedAtMs;
    if (found.kind === "none") {
      // GitHub answers a dispatch with the run's id, so it makes the run at once; lists may lag behind by minutes.
      if (ageMs >= appearsWithinMs) return undefined;
      throw notYet("No run of this dispatch is visible yet.", LOOK_AGAIN_MS);
    }
    if (!correlated && ageMs < settleMs) throw notYet("The runs cannot be told apart yet.", LOOK_AGAIN_MS);
    if (found.kind === "several") throw refused("AmbiguousRun", severalRuns(found.runs));
    const { run } = found;
    return {
      ref: toRunRef(knownRun(repository.owner, repository.repo, run.id)),
      url: run.url,
      claim: run.id,
    };
  }

  async function readAccepted(ref: AcceptedDispatch, request: ReadRequest): Promise<RunState> {
    const found = await findRun(api, ref, ref, request.isClaimed, request.signal);
    const settled = request.ageMs >= settleMs;
    if (found.kind === "none") {
      return request.ageMs < appearsWithinMs
        ? dispatchedState("GitHub accepted the dispatch; its run has not appeared yet")
        : notAppeared(ref, appearsWithinMs);
    }
    if (ref.correlated && found.kind === "run") return readFound(ref, found.run, request);
    const contested = idLess.isContested(ref);
    if (found.kind === "several" || contested) {
      if (!settled) return dispatchedState("GitHub accepted the dispatch; its run cannot be told yet");
      idLess.settle(ref, ref);
      return notTold(found.kind === "several" ? found.runs : [found.run]);
    }
    if (!settled && ref.seen?.includes(found.run.id) !== true) {
      return dispatchedState("GitHub accepted the dispatch; a run of it is being waited for");
    }
    return readFound(ref, found.run, request);
  }

  async function readFound(ref: AcceptedDispatch, run: Run, request: ReadRequest): Promise<RunState> {
    const known = knownRun(ref.owner, ref.repo, run.id);
    const state = await readRun(session, known, request);
    idLess.settle(ref, ref);
    return { ...state, ref: toRunRef(known), claim: run.id };
  }

  async function resolve(stored: Json, signal: AbortSignal): Promise<KnownRun | undefined> {
    const ref = parseRef(stored);
    if (isKnown(ref)) return ref;
    // Without a key, only a read can tell: it knows what other tasks have claimed.
    if (!ref.correlated) return undefined;
    const found = await findRun(api, ref, ref, async () => false, signal);
    return found.kind === "run" ? knownRun(ref.owner, ref.repo, found.run.id) : undefined;
  }

  return {
    ...runParts(session, options, resolve),
    appearsWithinMs,
    ...(options.owner !== undefined && options.repo !== undefined
      ? { consoleUrl: workflowUrl(options, { owner: options.owner, repo: options.repo }, workflow) }
      : {}),
    start,
    find,
    async read(stored, request) {
      const ref = parseRef(stored);
      return isKnown(ref) ? readRun(session, ref, request) : readAccepted(ref, request);
    },
    async stop(stored, request) {
      const run = await resolve(stored, request.signal);
      if (run === undefined)
        throw notYet("The run has not appeared yet; it is cancelled then.", LOOK_AGAIN_MS);
      await stopRun(session, run, request, options.forceCancelAfterMs);
    },
  };
}

function dispatchedState(message: string): RunState {
  return { native: "dispatched", status: "submitted", message };
}

function notAppeared(ref: AcceptedDispatch, withinMs: number): RunState {
  const message =
    `GitHub accepted the dispatch, but no run of ${ref.workflow} on ${ref.branch} appeared within ` +
    `${Math.round(withinMs / 1000)} s. Nothing was started again.`;
  return { native: "dispatched", status: "failed", failure: { code: "RunNotFound", message } };
}

function notTold(runs: readonly Run[]): RunState {
  const message = severalRuns(runs);
  const links = runs.slice(0, 10).map((run) => ({ uri: run.url, name: `Run ${run.id}` }));
  return { native: "dispatched", status: "failed", failure: { code: "AmbiguousRun", message, links } };
}

function workflowUrl(options: GitHubActionsOptions, { owner, repo }: Repository, workflow: string): string {
  const origin = webOrigin(options.baseUrl);
  const file = /\.ya?ml$/.test(workflow) ? `/workflows/${workflow}` : "";
  return `${origin}/${owner}/${repo}/actions${file}`;
}
