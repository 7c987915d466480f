import { Webhooks } from "@octokit/webhooks";
import type { EventRequest, RunRef } from "@taskferry/core";
import { JSONParse } from "json-with-bigint";
import { refused } from "./errors.js";
import type { RepositoryOptions } from "./options.js";
import { knownRun, toRunRef } from "./ref.js";
import { allowsRepository } from "./target.js";
import { fields } from "./wire.js";

const MAX_REMEMBERED_DELIVERIES = 2000;

// The library's own logger prints whole payloads.
const SILENT = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** Where each event says which run it is about. */
const RUN_OF: Readonly<Record<string, (payload: unknown) => RunOfEvent>> = {
  workflow_run: (payload) => runIn(fields(payload)["workflow_run"], "id"),
  workflow_job: (payload) => runIn(fields(payload)["workflow_job"], "run_id"),
  deployment_review: (payload) => runIn(fields(payload)["workflow_run"], "id"),
};

interface RunOfEvent {
  readonly runId: string | undefined;
  readonly attempt: number | undefined;
}

/**
 * Verifies webhook deliveries and tells which runs to read again.
 * https://docs.github.com/webhooks/using-webhooks/validating-webhook-deliveries
 */
export class Deliveries {
  readonly #webhooks: readonly Webhooks[];
  readonly #options: RepositoryOptions;
  readonly #seen = new Set<string>();

  constructor(secrets: readonly string[], options: RepositoryOptions) {
    this.#webhooks = secrets.map((secret) => new Webhooks({ secret, log: SILENT }));
    this.#options = options;
  }

  /** Throws (`rejected`) when the delivery is not signed with one of the secrets. */
  async receive(request: EventRequest): Promise<readonly RunRef[]> {
    const raw = new TextDecoder().decode(request.body);
    const signature = request.headers["x-hub-signature-256"] ?? "";
    if (!(await this.#isSigned(raw, signature))) {
      throw refused("BadSignature", "The delivery is not signed with the webhook's secret.");
    }
    // Only signed deliveries are remembered: a stranger must not use up the room or an id.
    const delivery = request.headers["x-github-delivery"];
    if (delivery !== undefined && this.#isReplay(delivery)) return [];
    const event = request.headers["x-github-event"] ?? "";
    if (!Object.hasOwn(RUN_OF, event)) return [];
    const payload = parse(raw, request.headers["content-type"] ?? "");
    const repository = fields(fields(payload)["repository"]);
    const owner = String(fields(repository["owner"])["login"] ?? "");
    const repo = String(repository["name"] ?? "");
    if (!allowsRepository(this.#options, { owner, repo })) return [];
    const { runId, attempt } = RUN_OF[event]?.(payload) ?? {};
    if (runId === undefined) return [];
    return [toRunRef(knownRun(owner, repo, runId, attempt))];
  }

  async #isSigned(body: string, signature: string): Promise<boolean> {
    if (body === "" || signature === "") return false;
    for (const webhooks of this.#webhooks) {
      if (await webhooks.verify(body, signature)) return true;
    }
    return false;
  }

  #isReplay(delivery: string): boolean {
    if (this.#seen.has(delivery)) return true;
    this.#seen.add(delivery);
    if (this.#seen.size > MAX_REMEMBERED_DELIVERIES) {
      for (const oldest of this.#seen) {
        this.#seen.delete(oldest);
        break;
      }
    }
    return false;
  }
}

/** Not `JSON.parse`, which would round ids above 2^53. */
function parse(raw: string, contentType: string): unknown {
  const isForm = contentType.startsWith("application/x-www-form-urlencoded");
  try {
    return JSONParse(isForm ? (new URLSearchParams(raw).get("payload") ?? "") : raw);
  } catch {
    throw refused("InvalidPayload", "The delivery's body is not JSON.");
  }
}

function runIn(value: unknown, idName: string): RunOfEvent {
  const run = fields(value);
  const id = run[idName];
  const attempt = run["run_attempt"];
  return {
    runId: typeof id === "number" || typeof id === "bigint" ? String(id) : undefined,
    attempt: typeof attempt === "number" ? attempt : undefined,
  };
}
