import assert from "node:assert/strict";
import { canonicalJson } from "@taskferry/core";
import type { Delivery } from "../drive.js";
import { requirement } from "../requirement.js";
import { throughJson } from "../scene.js";

/** An event is a hint to read again, and only if it is authentic. */
export const events = [
  requirement({
    id: "events.refs",
    behaviour: "events",
    says: "An authentic delivery is turned into the ref of its run, equal to the one that is stored",
    source: "WorkflowAdapter.events",
    drive: ["event"],
    adapter: ["events"],
    async check(scene) {
      const run = await scene.start();
      await run.until("a run that can be read", () => true);
      const refs = await scene.adapter.events({ ...(await scene.drive.event(run)), signal: scene.signal });
      const told = refs.map((ref) => canonicalJson(throughJson(ref)));
      assert.deepEqual(told, [canonicalJson(run.ref)]);
    },
  }),
  requirement({
    id: "events.foreign",
    behaviour: "events",
    says: "An authentic delivery about nothing of ours is `[]`",
    source: "WorkflowAdapter.events",
    drive: ["foreignEvent"],
    adapter: ["events"],
    async check(scene) {
      await scene.start();
      const delivery = await scene.drive.foreignEvent();
      assert.deepEqual(await scene.adapter.events({ ...delivery, signal: scene.signal }), []);
    },
  }),
  requirement({
    id: "events.unsigned",
    behaviour: "events",
    says: "A delivery without its proof throws",
    source: "WorkflowAdapter.events",
    drive: ["event"],
    adapter: ["events"],
    async check(scene) {
      const { body, headers } = await scene.drive.event(await scene.start());
      const unsigned = onlyContentHeaders(headers);
      await scene.refusal(scene.adapter.events({ body, headers: unsigned, signal: scene.signal }));
    },
  }),
  requirement({
    id: "events.tampered",
    behaviour: "events",
    says: "A delivery whose body was changed by one byte throws, even if it means the same as JSON",
    source: "EventRequest.body",
    drive: ["event"],
    adapter: ["events"],
    async check(scene) {
      const { body, headers } = await scene.drive.event(await scene.start());
      const tampered = new Uint8Array([...body, 0x20]);
      await scene.refusal(scene.adapter.events({ body: tampered, headers, signal: scene.signal }));
    },
  }),
] as const;

function onlyContentHeaders(headers: Delivery["headers"]): Delivery["headers"] {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith("content-")));
}
