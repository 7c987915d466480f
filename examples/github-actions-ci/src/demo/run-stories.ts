/** Runs that are dispatched, watched, run again and cancelled, each by clients of all three generations. */
import { check, tell, textOf, until, withClients } from "@taskferry/example-stage";
import { latest, type RunRecord } from "@taskferry/github-actions-emulator";
import { runOf } from "./results.js";
import type { Stage } from "./stage.js";

/** Three dispatches in the same moment: three runs, nobody's mixed up. */
export async function ciIsRun(stage: Stage): Promise<void> {
  const { github } = stage;
  const seen = new Set<string>();
  const before = github.runs.length;
  const sessions = await stage.clients();
  const tasks = await Promise.all(
    sessions.map(({ generation }, index) =>
      sessions[index]?.start("run_ci", { git_ref: "feature/tides", suite: "all", pattern: generation }),
    ),
  );
  const runs = github.runs.slice(before);
  tell("github", `got ${runs.length} dispatches: ${runs.map(({ id }) => id).join(", ")}`);
  await Promise.all(runs.map((run) => github.begin(run)));
  await withClients(sessions, async ({ generation }, index) => {
    const task = tasks[index];
    if (task === undefined) throw new Error("no task");
    // The founding draft has no status messages.
    if (generation !== "draft") {
      const { message } = await until(
        "progress",
        () => task.status(),
        ({ message = "" }) => /running/.test(message),
      );
      tell(generation, `sees: ${message}`);
      check(
        generation,
        "is told the jobs and the step",
        message === "1 of 2 jobs done, running: test / Test",
      );
    }
    const run = github.runWith({ pattern: generation });
    const ended = task.end();
    await github.succeed(run);
    const { runId, conclusion, branch } = runOf((await ended).result);
    const right = conclusion === "success" && branch === "feature/tides" && runId === String(run.id);
    check(generation, `has its own run's result: ${runId}, ${conclusion}`, right && !seen.has(String(runId)));
    seen.add(String(runId));
  });
}

/** A failure is a result that says why. Running it again is another task; the first one stays as it ended. */
export async function failuresAreExplained(stage: Stage): Promise<void> {
  const { github } = stage;
  await withClients(await stage.clients(), async (client) => {
    const { generation } = client;
    const task = await client.start("run_ci", { pattern: `failing for ${generation}` });
    const run = github.runWith({ pattern: `failing for ${generation}` });
    await github.begin(run);
    await github.fail(run);
    const { result } = await task.end();
    const text = textOf(result);
    tell(generation, text.split("\n")[0] ?? "");
    const told = runOf(result);
    check(
      generation,
      `as data: ${told.jobs?.[0]?.failedSteps}`,
      told.jobs?.[0]?.failedSteps.join() === "Test",
    );
    const line = text.split("\n").find((one) => one.includes("crosses the river"));
    tell(generation, `of the log: ${line?.trim()}`);
    const explained = line?.includes("✗ crosses the river: expected 'far bank'") === true;
    check(generation, "was told the failing lines, without colours", result?.isError === true && explained);
    check(generation, "and nothing of the jobs that passed", !text.includes("lint ran"));

    const again = await client.start("rerun_failed", { run: String(run.id) });
    check(generation, "run again: another task", again.handle !== task.handle && run.attempts.length === 2);
    await github.beginAgain(run);
    await github.succeed(run);
    const second = runOf((await again.end()).result);
    const jobs = second.jobs
      ?.map(({ name }) => name)
      .sort()
      .join();
    check(generation, `attempt ${second.attempt}: ${second.conclusion}`, second.conclusion === "success");
    check(generation, "of the job that failed, beside the one that had passed", jobs === "lint,test");
    const first = await (await client.resume(task.handle)).end();
    check(generation, "the first task still tells the failure", first.result?.isError === true);
  });
}

/** A run that somebody else started, found by its id, its link, or its branch. */
export async function runsAreWatched(stage: Stage): Promise<void> {
  const { github } = stage;
  const run = github.push("main");
  const posts = github.posts(/./);
  const ways = [
    { run: String(run.id) },
    { run: `${github.server.url}/octo/hello/actions/runs/${run.id}` },
    { branch: "main" },
  ];
  const sessions = await stage.clients();
  const tasks = await Promise.all(sessions.map((one, index) => one.start("watch_run", ways[index] ?? {})));
  await github.begin(run);
  await github.succeed(run);
  await withClients(sessions, async ({ generation }, index) => {
    const { runId, event } = runOf((await tasks[index]?.end())?.result);
    const named = Object.entries(ways[index] ?? {})
      .flat()
      .join(" ");
    check(generation, `watched ${named}`, runId === String(run.id) && event === "push");
  });
  check("github", "was only read", github.posts(/./) === posts);
}

/** A cancel is a request to GitHub. Each generation has its own word for the time until it is done. */
export async function runsAreCancelled(stage: Stage): Promise<void> {
  const { github } = stage;
  await withClients(await stage.clients(), async (client) => {
    const { generation } = client;
    const task = await client.start("run_ci", { pattern: `cancelled by ${generation}` });
    const run = github.runWith({ pattern: `cancelled by ${generation}` });
    await github.begin(run);
    await until(
      "a running task",
      () => task.status(),
      ({ status }) => status === "working",
    );
    await task.cancel();
    await until(
      "the cancel at GitHub",
      async () => run.cancels.length,
      (count) => count > 0,
    );
    const { status } = await task.status();
    // GitHub has taken the cancel, and its always() steps go on.
    const expected = generation === "2026-07-28" ? "working" : "cancelled";
    check(generation, `while always() steps run: ${status}`, status === expected && isRunning(run));
    await github.endCancelled(run);
    const end = await until(
      "the end",
      () => task.status(),
      (seen) => seen.status !== "working",
    );
    check(generation, `when they are done: ${end.status}`, end.status === "cancelled");
  });
}

const isRunning = (run: RunRecord) => latest(run).status === "in_progress";
