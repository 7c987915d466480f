/** Servers that are killed without warning: their tasks go on in the next one, with the executions that they had. */
import { describe, expect, test } from "vitest";
import {
  endStatus,
  home,
  lookUntil,
  openCloud,
  serveProcess,
  session,
  theExecution,
  WAYS,
} from "./serving.js";

describe.each(WAYS)("$generation over $transport", ({ transport, generation }) => {
  test("killed when the execution was made and nobody had said so: found, and not made again", async () => {
    const opened = await openCloud(transport);
    const { cloud } = opened;
    cloud.inject("createExecution", { kind: "holdAnswer" });
    const folder = await home();
    const first = await serveProcess(folder, opened, transport);
    const task = await (await session(generation, first.url)).start({ orderId: "o-1" });
    await cloud.until(() => cloud.executions.size === 1);
    await first.kill();
    // Somebody else's, newer than ours.
    const { id } = await theExecution(cloud);
    cloud.create("us-central1", "orders", { argument: "{}", labels: {} });

    const second = await serveProcess(folder, opened, transport);
    const client = await session(generation, second.url);
    await lookUntil(client, task, ({ message }) => /^Running/.test(message));
    cloud.succeed(id, '"ours"');
    expect(await client.end(task)).toMatchObject({ status: "completed", text: "ours" });
    expect(cloud.count("createExecution")).toBe(1);
  });

  test("killed while the execution runs, which ends meanwhile: the next server tells how", async () => {
    const opened = await openCloud(transport);
    const { cloud } = opened;
    const folder = await home();
    const first = await serveProcess(folder, opened, transport);
    const before = await session(generation, first.url);
    const task = await before.start();
    await lookUntil(before, task, ({ message }) => /^Running/.test(message));
    await first.kill();
    cloud.succeed((await theExecution(cloud)).id, '"meanwhile"');

    const second = await serveProcess(folder, opened, transport);
    const client = await session(generation, second.url);
    expect(await client.end(task)).toMatchObject({ status: "completed", text: "meanwhile" });
    await theExecution(cloud);
  });

  test("killed between a cancel and Google: the next server sends it", async () => {
    const opened = await openCloud(transport);
    const { cloud } = opened;
    cloud.inject("cancelExecution", { kind: "cut", times: 1 });
    const folder = await home();
    const first = await serveProcess(folder, opened, transport);
    const before = await session(generation, first.url);
    const task = await before.start();
    await lookUntil(before, task, ({ message }) => /^Running/.test(message));
    await before.cancel(task);
    await cloud.until(() => cloud.count("cancelExecution") >= 1);
    await first.kill();

    const second = await serveProcess(folder, opened, transport);
    const client = await session(generation, second.url);
    const execution = await theExecution(cloud);
    await cloud.until(() => execution.state === "CANCELLED");
    expect(await endStatus(client, task)).toBe("cancelled");
  });
});
