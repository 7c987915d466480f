/** A GitHub to play with: the local server of GitHub's wire format, and what its runners do when the story says so. */
import { readFile } from "node:fs/promises";
import {
  deliver,
  deliveryOf,
  type JobRecord,
  latest,
  ProtocolServer,
  type RepositoryRecord,
  type RunRecord,
} from "@taskferry/github-actions-emulator";

const SECRET = "the secret of the webhook";

/** What the runner of the failing job writes. */
const FAILING_LOG = [
  "2026-12-01T04:00:00.0000000Z ##[group]Run npm test",
  "2026-12-01T04:00:01.0000000Z \u001b[32m✓\u001b[0m boards the ferry",
  "2026-12-01T04:00:02.0000000Z \u001b[31m✗\u001b[0m crosses the river: expected 'far bank', got 'near bank'",
  "2026-12-01T04:00:03.0000000Z ##[error]Process completed with exit code 1.",
  "",
].join("\n");

export class GitHub {
  /** Where deliveries of the repository's webhook go. Absent: it has none. */
  webhookUrl: string | undefined;

  private constructor(
    readonly server: ProtocolServer,
    readonly repository: RepositoryRecord,
  ) {}

  /** One repository, `octo/hello`, with the two workflows of this example. */
  static async open(): Promise<GitHub> {
    const server = await ProtocolServer.start();
    const files: Record<string, string> = {};
    for (const name of ["ci.yml", "deploy.yml"]) {
      const file = new URL(`../../workflows/${name}`, import.meta.url);
      files[`.github/workflows/${name}`] = await readFile(file, "utf8");
    }
    return new GitHub(server, server.state.repository("octo/hello", { files, branches: ["feature/tides"] }));
  }

  /** What the server of the example needs in its environment. */
  get environment(): Record<string, string> {
    return {
      GITHUB_REPOSITORY: "octo/hello",
      GITHUB_TOKEN: "ghp_of-the-demo",
      GITHUB_API_URL: this.server.url,
      GITHUB_WEBHOOK_SECRET: SECRET,
    };
  }

  get runs(): readonly RunRecord[] {
    return this.server.state.runs;
  }

  /** The run that was dispatched with these inputs. */
  runWith(inputs: Record<string, string>): RunRecord {
    const named = Object.entries(inputs);
    const run = this.runs.find((one) => named.every(([name, value]) => one.inputs[name] === value));
    if (run === undefined) throw new Error(`No run was dispatched with ${JSON.stringify(inputs)}`);
    return run;
  }

  /** How often GitHub was asked for this, e.g. `/dispatches$/`. */
  posts(route: RegExp): number {
    return this.server.calls(/^POST /).filter((call) => route.test(call.route)).length;
  }

  /** A push to a branch: CI runs by itself. */
  push(branch: string): RunRecord {
    const [workflow] = this.repository.workflows;
    return this.server.state.addRun(this.repository, {
      event: "push",
      branch,
      ...(workflow && { workflow }),
    });
  }

  /** Somebody presses "Run workflow" on the web site, where no key is filled in. */
  pressRunWorkflow(branch: string): RunRecord {
    const run = this.push(branch);
    return Object.assign(run, { event: "workflow_dispatch" });
  }

  /** A runner takes the run: lint is through, the tests are at work. */
  async begin(run: RunRecord): Promise<void> {
    const { state } = this.server;
    state.set(run, "in_progress");
    state.addJob(run, { name: "lint", conclusion: "success" });
    this.test(run);
    await this.tell(run, "workflow_job");
  }

  async succeed(run: RunRecord): Promise<void> {
    this.endTest(run, "success", "all tests passed\n");
    this.server.state.finish(run, "success");
    await this.tell(run, "workflow_run");
  }

  async fail(run: RunRecord): Promise<void> {
    this.endTest(run, "failure", FAILING_LOG);
    this.server.state.finish(run, "failure");
    await this.tell(run, "workflow_run");
  }

  /** The runner of a re-run begins: the job that failed is done again. */
  async beginAgain(run: RunRecord): Promise<void> {
    this.server.state.set(run, "in_progress");
    this.test(run);
    await this.tell(run, "workflow_job");
  }

  /** The deployment waits for a review of its environment. */
  async waitForReview(run: RunRecord, environment: string): Promise<void> {
    const { state } = this.server;
    state.addJob(run, { name: "build", conclusion: "success" });
    state.addJob(run, { name: "deploy", status: "waiting" });
    state.addPending(run, environment);
    state.set(run, "waiting");
    await this.tell(run, "deployment_review");
  }

  /** It has been reviewed, and GitHub goes on. */
  async goOn(run: RunRecord): Promise<void> {
    const approved = run.reviews.at(-1)?.state === "approved";
    const conclusion = approved ? "success" : "failure";
    for (const job of latest(run).jobs)
      endJob(job, job.conclusion ?? conclusion, `${job.name}: ${conclusion}\n`);
    this.server.state.finish(run, conclusion);
    await this.tell(run, "workflow_run");
  }

  /** A cancelled run has come through its `always()` steps. */
  async endCancelled(run: RunRecord): Promise<void> {
    this.endTest(run, "cancelled", "##[error]The operation was canceled.\n");
    this.server.state.finish(run, "cancelled");
    await this.tell(run, "workflow_run");
  }

  /** Delivers the webhook. @returns the answer's status; `undefined`: there is none, or nobody took it */
  async tell(run: RunRecord, event: Parameters<typeof deliveryOf>[1]): Promise<number | undefined> {
    if (this.webhookUrl === undefined) return undefined;
    const delivery = deliveryOf(this.server.url, event, run, SECRET);
    return deliver(this.webhookUrl, delivery).catch(() => undefined);
  }

  private test(run: RunRecord): void {
    const steps = [
      { name: "Install", status: "completed", conclusion: "success" },
      { name: "Test", status: "in_progress", conclusion: null },
    ];
    this.server.state.addJob(run, { name: "test", status: "in_progress", steps });
  }

  private endTest(run: RunRecord, conclusion: string, log: string): void {
    for (const job of latest(run).jobs) if (job.status !== "completed") endJob(job, conclusion, log);
  }
}

function endJob(job: JobRecord, conclusion: string, log: string): void {
  Object.assign(job, { status: "completed", conclusion, completedAtMs: Date.now(), log });
  for (const step of job.steps) {
    if (step.status !== "completed") Object.assign(step, { status: "completed", conclusion });
  }
}
