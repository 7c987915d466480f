import { describe, expect, it } from "vitest";
import { eventually, isRunning, node, sh, started } from "./harness.js";

describe("a stop", () => {
  it("ends the command with SIGTERM: cancelled", async () => {
    const run = await sh("echo up; sleep 60");
    await run.untilMessage("up");
    await run.stop();
    expect(await run.untilEnded()).toMatchObject({ native: "stopped", status: "cancelled" });
  });

  it("is cancelled even if the command then exits with status 0", async () => {
    const run = await sh("trap 'echo cleaned; exit 0' TERM; echo up; while :; do sleep 0.05; done");
    await run.untilMessage("up");
    await run.stop();
    expect(await run.untilEnded()).toMatchObject({ status: "cancelled", message: "cleaned" });
  });

  it("is no end before the command has ended", async () => {
    const run = await sh("trap '' TERM; echo up; while :; do sleep 0.05; done");
    await run.untilMessage("up");
    await run.stop();
    expect(await run.read()).toMatchObject({ native: "stopping", status: "working" });
  });

  it("becomes SIGKILL after the grace period", async () => {
    const run = await sh("trap '' TERM; echo up; while :; do sleep 0.05; done", { graceMs: 200 });
    await run.untilMessage("up");
    await run.stop();
    await run.stop();
    expect(await run.untilEnded()).toMatchObject({ native: "stopped", status: "cancelled" });
  });

  it("reaches the whole group, also those who ignore it", async () => {
    const run = await sh("(trap '' TERM; while :; do sleep 0.05; done) & echo $!; wait", { graceMs: 200 });
    const { message } = await run.until((state) => expect(state.message).toMatch(/^\d+$/));
    expect(isRunning(Number(message))).toBe(true);
    await run.stop();
    expect((await run.untilEnded()).status).toBe("cancelled");
    await eventually(() => expect(isRunning(Number(message))).toBe(false));
  });

  it("of a run that has ended changes nothing", async () => {
    const run = await sh("exit 3");
    await run.untilEnded();
    await run.stop();
    expect(await run.read()).toMatchObject({ native: "exited 3", status: "completed" });
  });

  it("right after the start is kept", async () => {
    const run = await sh("sleep 60");
    await run.stop();
    expect((await run.untilEnded()).status).toBe("cancelled");
  });
});

describe("the time limit", () => {
  it("ends the command: completed, with the failure TimedOut", async () => {
    const run = await sh("echo up; sleep 60", { timeLimitMs: 300 });
    expect(await run.untilEnded()).toMatchObject({
      native: "timed out",
      status: "completed",
      failure: { code: "TimedOut", text: "up" },
    });
  });

  it("kills who ignores SIGTERM", async () => {
    const run = await sh("trap '' TERM; while :; do sleep 0.05; done", { timeLimitMs: 300, graceMs: 100 });
    expect((await run.untilEnded()).native).toBe("timed out");
  });

  it("of more than a timer can count is no time-out at once", async () => {
    const run = await sh("echo done", { timeLimitMs: 2 ** 40 });
    expect((await run.untilEnded()).native).toBe("exited 0");
  });
});

it("a SIGTERM from elsewhere is passed on to the command, and is no cancel", async () => {
  const run = await sh("echo up; sleep 60");
  await run.untilMessage("up");
  process.kill(await run.pid("claim"), "SIGTERM");
  expect(await run.untilEnded()).toMatchObject({ native: "signalled SIGTERM", status: "completed" });
});

it("no zombie and no supervisor is left", async () => {
  const run = await started({ command: ["true"] });
  await run.untilEnded();
  const [supervisor, command] = [await run.pid("claim"), await run.pid("command")];
  await eventually(() => {
    expect(() => process.kill(supervisor, 0)).toThrow("ESRCH");
    expect(() => process.kill(command, 0)).toThrow("ESRCH");
  });
});

it("the command leads a session of its own", async () => {
  const script = "console.log(require('node:fs').readFileSync('/proc/self/stat', 'utf8').split(') ')[1])";
  const run = await node(script);
  const { message } = await run.untilEnded();
  const [, , group, session] = (message as string).split(" ");
  expect([group, session]).toEqual(Array(2).fill(String(await run.pid("command"))));
});
