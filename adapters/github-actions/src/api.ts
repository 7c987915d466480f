import type { ClientFor } from "./client.js";
import { isRequestError, statusOf } from "./errors.js";
import { RateLimit } from "./rate-limit.js";
import { fields, items } from "./wire.js";

/** A repository to ask about. */
export interface Repository {
  readonly owner: string;
  readonly repo: string;
}

/** A list, or the first part of it. */
export interface Listed<T> {
  readonly items: readonly T[];
  readonly total: number;
  /** How many requests it took. */
  readonly pages: number;
}

/** An answer to a write. */
export interface Answered {
  readonly status: number;
  readonly data: unknown;
  /** When GitHub answered, by its own clock, in epoch milliseconds. */
  readonly serverTimeMs: number | undefined;
}

interface CacheEntry {
  readonly etag: string;
  readonly value: unknown;
}

/** Remembered answers. A page of 100 jobs, picked, is some 40 kB. */
const CACHE_ENTRIES = 500;
const PAGE_SIZE = 100;
const PARALLEL_PAGES = 4;

/**
 * The one door to GitHub's REST API: conditional reads (an answer that has not changed costs nothing of the
 * rate limit), writes that are sent exactly once, and the rate limit's headers.
 */
export class GitHubApi {
  readonly #rateLimits = new Map<string, RateLimit>();
  readonly #limitPerOwner: boolean;
  readonly #clients: ClientFor;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #cache = new Map<string, CacheEntry>();
  #clockOffsetMs = 0;

  /** `limitPerOwner`: each installation of a GitHub App has a budget of its own. */
  constructor(clients: ClientFor, options: { readonly apiVersion: string; readonly limitPerOwner: boolean }) {
    const { apiVersion } = options;
    this.#clients = clients;
    this.#limitPerOwner = options.limitPerOwner;
    this.#headers = { "x-github-api-version": apiVersion, accept: "application/vnd.github+json" };
  }

  /** What is known of the budget that calls about a repository are counted against. */
  rateLimit(repository: Repository): RateLimit {
    const name = this.#limitPerOwner ? repository.owner.toLowerCase() : "";
    const limit = this.#rateLimits.get(name) ?? new RateLimit();
    this.#rateLimits.set(name, limit);
    return limit;
  }

  /** Now, by GitHub's clock as far as it is known, in epoch milliseconds. */
  nowMs(): number {
    return Date.now() + this.#clockOffsetMs;
  }

  /** A time of our clock in GitHub's, in epoch milliseconds. */
  toServerTimeMs(ourTimeMs: number): number {
    return ourTimeMs + this.#clockOffsetMs;
  }

  /** Reads one resource; `pick` makes of the body what is kept. One route has one `pick`. */
  async get<T>(
    repository: Repository,
    route: string,
    parameters: Readonly<Record<string, unknown>>,
    pick: (data: unknown) => T,
    signal: AbortSignal,
  ): Promise<T> {
    const key = JSON.stringify([route, repository.owner, repository.repo, parameters]);
    const cached = this.#cache.get(key);
    const headers = cached === undefined ? this.#headers : { ...this.#headers, "if-none-match": cached.etag };
    try {
      const response = await this.#request(
        repository,
        `GET ${route}`,
        { ...parameters, headers },
        { signal },
      );
      const value = pick(response.data);
      const etag = response.headers["etag"];
      this.#cache.delete(key);
      if (typeof etag === "string") this.#remember(key, { etag, value });
      return value;
    } catch (error) {
      // Octokit throws "not modified".
      if (cached === undefined || statusOf(error) !== 304) throw error;
      this.#cache.delete(key);
      this.#remember(key, cached);
      return cached.value as T;
    }
  }

  /** Reads a list, at most `max` items of it. `total` is what GitHub says there is. */
  async list<T>(
    repository: Repository,
    route: string,
    list: { readonly name?: string; readonly max: number },
    parameters: Readonly<Record<string, unknown>>,
    pick: (item: unknown) => T,
    signal: AbortSignal,
  ): Promise<Listed<T>> {
    const pickPage = (data: unknown) => ({
      items: items(data, list.name).map(pick),
      total: Number(fields(data)["total_count"] ?? Number.NaN),
    });
    const read = (page: number) =>
      this.get(repository, route, { ...parameters, per_page: PAGE_SIZE, page }, pickPage, signal);
    const first = await read(1);
    const all = [...first.items];
    let pages = 1;
    let isLast = first.items.length < PAGE_SIZE || all.length >= first.total;
    while (!isLast && all.length < list.max) {
      // Side by side where the total says that there are more: a thousand jobs are ten pages.
      const announced = Math.ceil(Math.min(list.max, first.total) / PAGE_SIZE) - pages;
      const count = announced > 1 ? Math.min(PARALLEL_PAGES, announced) : 1;
      const from = pages + 1;
      const next = await Promise.all(Array.from({ length: count }, (_, index) => read(from + index)));
      for (const page of next) all.push(...page.items);
      pages += next.length;
      isLast = next.some((page) => page.items.length < PAGE_SIZE) || all.length >= first.total;
    }
    const total = Number.isNaN(first.total) ? all.length : first.total;
    return { items: all.slice(0, list.max), total: Math.max(total, all.length), pages };
  }

  /**
   * Sends a write exactly once. Octokit's retry plugin would repeat a POST whose answer was lost,
   * which is how one dispatch becomes two runs.
   */
  async send(
    repository: Repository,
    route: string,
    parameters: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<Answered> {
    const response = await this.#request(
      repository,
      `POST ${route}`,
      { ...parameters, headers: this.#headers },
      { signal, retries: 0 },
    );
    const serverTimeMs = Date.parse(String(response.headers["date"]));
    return {
      status: response.status,
      data: response.data,
      serverTimeMs: Number.isNaN(serverTimeMs) ? undefined : serverTimeMs,
    };
  }

  /** Streams a download (a log) from byte `offset` on, through GitHub's redirect to its storage. */
  async *download(
    repository: Repository,
    route: string,
    parameters: Readonly<Record<string, unknown>>,
    offset: number,
    signal: AbortSignal,
  ): AsyncGenerator<Uint8Array> {
    const range = offset > 0 ? { range: `bytes=${offset}-` } : {};
    const response = await this.#request(
      repository,
      `GET ${route}`,
      { ...parameters, headers: { ...this.#headers, ...range } },
      { signal, parseSuccessResponseBody: false },
    );
    // Storage may not know ranges: then what was asked for is still to come.
    let skip = response.status === 206 ? 0 : offset;
    for await (const chunk of chunksOf(response.data)) {
      if (skip >= chunk.length) {
        skip -= chunk.length;
        continue;
      }
      yield skip > 0 ? chunk.subarray(skip) : chunk;
      skip = 0;
    }
  }

  async #request(
    repository: Repository,
    route: string,
    parameters: Readonly<Record<string, unknown>>,
    request: Readonly<Record<string, unknown>>,
  ): ReturnType<Awaited<ReturnType<ClientFor>>["request"]> {
    const rateLimit = this.rateLimit(repository);
    rateLimit.check();
    try {
      const client = await this.#clients(repository.owner, repository.repo);
      const response = await client.request(route, {
        owner: repository.owner,
        repo: repository.repo,
        ...parameters,
        request,
      });
      rateLimit.observe(response.headers);
      this.#observeClock(response.headers["date"]);
      return response;
    } catch (error) {
      rateLimit.observeError(error);
      if (isRequestError(error) && error.response !== undefined) {
        if (error.status === 304) rateLimit.observe(error.response.headers);
        this.#observeClock(error.response.headers["date"]);
      }
      throw error;
    }
  }

  #observeClock(date: unknown): void {
    const serverMs = Date.parse(String(date));
    // The header has whole seconds: half of one is the best guess for the rest.
    if (!Number.isNaN(serverMs)) this.#clockOffsetMs = serverMs + 500 - Date.now();
  }

  #remember(key: string, entry: CacheEntry): void {
    this.#cache.set(key, entry);
    if (this.#cache.size <= CACHE_ENTRIES) return;
    // A Map keeps insertion order, and a hit is inserted anew: the first is the least recently used.
    for (const oldest of this.#cache.keys()) {
      this.#cache.delete(oldest);
      return;
    }
  }
}

/** A body as Octokit hands it out: a stream, or (older versions, other plugins) already read. */
async function* chunksOf(body: unknown): AsyncGenerator<Uint8Array> {
  if (typeof body === "string") yield new TextEncoder().encode(body);
  else if (body instanceof ArrayBuffer) yield new Uint8Array(body);
  else if (body !== null && typeof body === "object" && Symbol.asyncIterator in body) {
    yield* body as AsyncIterable<Uint8Array>;
  }
}
