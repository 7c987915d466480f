import { createAppAuth } from "@octokit/auth-app";
import { Octokit } from "@octokit/rest";
import { refused, statusOf } from "./errors.js";

/** The one method of an Octokit that is used: any Octokit (core, rest, `octokit`, with your plugins) fits. */
export interface OctokitLike {
  request(
    route: string,
    parameters?: Record<string, unknown>,
  ): Promise<{
    readonly status: number;
    readonly url: string;
    readonly headers: Record<string, string | number | undefined>;
    // biome-ignore lint/suspicious/noExplicitAny: the body of any route; wire.ts picks it apart
    readonly data: any;
  }>;
}

/** A GitHub App: https://docs.github.com/apps/creating-github-apps */
export interface GitHubAppAuth {
  readonly appId: number | string;
  /** PEM. */
  readonly privateKey: string;
  /** @default the installation on the repository that is asked for */
  readonly installationId?: number | string;
}

/** How to reach GitHub. */
export interface ConnectionOptions {
  /** Your own Octokit. Leaves `auth` and `baseUrl` unused. */
  readonly octokit?: OctokitLike;
  /** A token (personal, fine-grained, `GITHUB_TOKEN`) or a GitHub App. */
  readonly auth?: string | GitHubAppAuth;
  /**
   * The REST API's address. GitHub Enterprise Server: `https://HOST/api/v3`; data residency: `https://api.NAME.ghe.com`.
   * @default "https://api.github.com"
   */
  readonly baseUrl?: string;
  /**
   * Sent as `X-GitHub-Api-Version`. From `2026-03-10` on a dispatch always answers the run's id.
   * https://docs.github.com/rest/about-the-rest-api/api-versions
   * @default "2022-11-28"
   */
  readonly apiVersion?: string;
}

/** Gives the client that may see a repository. */
export type ClientFor = (owner: string, repo: string) => Promise<OctokitLike>;

const DEFAULT_BASE_URL = "https://api.github.com";

// Octokit's request log writes every refused request, the 304s of polling among them, to stderr.
const SILENT = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** The clients of a connection, made when first needed. */
export function clientsOf(options: ConnectionOptions): ClientFor {
  const { octokit, auth } = options;
  if (octokit !== undefined) return async () => octokit;
  const base = {
    baseUrl: options.baseUrl ?? DEFAULT_BASE_URL,
    userAgent: "taskferry-github-actions",
    log: SILENT,
    request: { log: SILENT },
  };
  if (typeof auth !== "object") {
    let client: Octokit | undefined;
    return async () => {
      client ??= new Octokit(auth === undefined ? base : { ...base, auth });
      return client;
    };
  }
  const asInstallation = (installationId: number | string): Octokit =>
    new Octokit({
      ...base,
      authStrategy: createAppAuth,
      auth: { appId: auth.appId, privateKey: auth.privateKey, installationId, log: SILENT },
    });
  if (auth.installationId !== undefined) {
    const installationId = auth.installationId;
    let client: Octokit | undefined;
    return async () => {
      client ??= asInstallation(installationId);
      return client;
    };
  }
  return installations(
    asInstallation,
    () =>
      new Octokit({
        ...base,
        authStrategy: createAppAuth,
        auth: { appId: auth.appId, privateKey: auth.privateKey, log: SILENT },
      }),
  );
}

/** One client per installation: an App sees each owner's repositories through another one. */
function installations(asInstallation: (id: number | string) => Octokit, asApp: () => Octokit): ClientFor {
  let app: Octokit | undefined;
  const byInstallation = new Map<string, Octokit>();
  const byRepository = new Map<string, Promise<Octokit>>();
  const look = async (owner: string, repo: string): Promise<Octokit> => {
    app ??= asApp();
    const id = await installationId(app, owner, repo);
    const client = byInstallation.get(id) ?? asInstallation(id);
    byInstallation.set(id, client);
    return client;
  };
  return (owner, repo) => {
    const name = `${owner}/${repo}`.toLowerCase();
    const known = byRepository.get(name);
    if (known !== undefined) return known;
    const found = look(owner, repo);
    byRepository.set(name, found);
    // A failed look-up is not remembered: the App may be installed a minute later.
    found.catch(() => byRepository.delete(name));
    return found;
  };
}

async function installationId(app: Octokit, owner: string, repo: string): Promise<string> {
  try {
    const { data } = await app.request("GET /repos/{owner}/{repo}/installation", { owner, repo });
    return String(data.id);
  } catch (error) {
    // Not "gone": the runs are there, and visible again when the App is.
    if (statusOf(error) !== 404) throw error;
    throw refused("AppNotInstalled", "The GitHub App is not installed on this repository.");
  }
}

/** Where people look at what the API at `baseUrl` serves: `https://github.com`, or the server's own site. */
export function webOrigin(baseUrl: string = DEFAULT_BASE_URL): string {
  const url = new URL(baseUrl);
  // api.github.com and api.NAME.ghe.com; an Enterprise Server answers both on one host.
  return `${url.protocol}//${url.host.replace(/^api\./, "")}`;
}
