import type { GitHubApi } from "./api.js";
import type { LogExcerpt } from "./log-text.js";
import type { LogOptions, ReadingOptions } from "./options.js";
import { RunReader } from "./run-reader.js";

/** What the parts of one adapter instance share: a door to GitHub, and how runs are read. */
export interface Session {
  readonly api: GitHubApi;
  readonly runs: RunReader;
  readonly progress: boolean;
  readonly logs: Required<LogOptions>;
  /** Excerpts of failed jobs' logs, by job id, while the rest of their result cannot be had yet. */
  readonly excerpts: Map<string, LogExcerpt>;
}

export function openSession(api: GitHubApi, options: ReadingOptions): Session {
  return {
    api,
    runs: new RunReader(api, options),
    excerpts: new Map(),
    progress: options.progress ?? true,
    logs: {
      jobs: options.logs?.jobs ?? 5,
      lines: options.logs?.lines ?? 60,
      bytes: options.logs?.bytes ?? 8192,
    },
  };
}
