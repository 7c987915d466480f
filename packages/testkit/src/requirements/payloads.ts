import assert from "node:assert/strict";
import type { Json, JsonObject } from "@taskferry/core";
import { requirement, type SceneWith } from "../requirement.js";

/** Text that bad encodings, hand-made quoting and careless object copies change. */
const TRICKY = [
  "naïve – ½ €",
  "日本語 עברית العربية",
  "👩‍👩‍👧‍👦🇯🇵\u{1F600}",
  "e\u0301 is not \u00e9",
  "line one\nline two\r\n\ttabbed",
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the placeholder is the point
  "\"quoted\" 'twice' `thrice` \\ back\\\\slash $HOME ${x} {{y}} <b>&amp;</b> %20",
  "\u2028\u2029\ufeff",
];

/** An output that fits the engines we know: Step Functions' limit is 256 KiB. */
const LARGE_OUTPUT = "0123456789abcdef".repeat(12 * 1024);

/** What goes in and comes out is not changed on the way. */
export const payloads = [
  requirement({
    id: "payloads.input",
    behaviour: "payloads",
    says: "The run gets the input as it is: nested, with numbers, booleans and nulls",
    source: "StartRequest.input",
    drive: ["inputOf"],
    async check(scene) {
      const payload = {
        number: 1.5,
        zero: 0,
        yes: true,
        nothing: null,
        list: [1, [2]],
        object: { a: { b: [] } },
      };
      const run = await scene.start({ payload });
      assert.deepEqual(await scene.drive.inputOf(run), payload);
    },
  }),
  requirement({
    id: "payloads.input-text",
    behaviour: "payloads",
    says: "Any text in the input arrives unchanged: other scripts, emoji, quotes, line ends, `__proto__`",
    source: "StartRequest.input",
    drive: ["inputOf"],
    async check(scene) {
      const payload = JSON.parse(`{"__proto__":"own","texts":${JSON.stringify(TRICKY)}}`) as JsonObject;
      const run = await scene.start({ payload });
      assert.equal(JSON.stringify(sorted(await scene.drive.inputOf(run))), JSON.stringify(sorted(payload)));
    },
  }),
  requirement({
    id: "payloads.largest-input",
    behaviour: "payloads",
    says: "An input of exactly the engine's limit is started",
    source: "StartRequest.input",
    drive: ["maxInputBytes"],
    async check(scene) {
      const run = await scene.start({ payload: await payloadOf(scene, scene.drive.maxInputBytes()) });
      await run.until("a run that can be read", () => true);
    },
  }),
  requirement({
    id: "payloads.too-large",
    behaviour: "payloads",
    says: "An input beyond the engine's limit is `rejected` and starts nothing",
    source: "ErrorVerdict.kind",
    drive: ["maxInputBytes", "runs"],
    async check(scene) {
      const before = await scene.drive.runs();
      const payload = await payloadOf(scene, scene.drive.maxInputBytes() + 1);
      const { verdict } = await scene.refusal(scene.start({ payload }));
      assert.equal(verdict.kind, "rejected");
      assert.equal(await scene.drive.runs(), before);
    },
  }),
  requirement({
    id: "payloads.output-text",
    behaviour: "payloads",
    says: "Any text in the output is told unchanged",
    source: "RunOutput.value",
    drive: ["finish"],
    async check(scene) {
      const run = await scene.start();
      await scene.drive.finish(run, { texts: TRICKY });
      assert.deepEqual((await run.untilStatus("completed")).output?.value, { texts: TRICKY });
    },
  }),
  requirement({
    id: "payloads.large-output",
    behaviour: "payloads",
    says: "An output of 192 KiB is told whole",
    source: "RunOutput.value",
    drive: ["finish"],
    async check(scene) {
      const run = await scene.start();
      await scene.drive.finish(run, { text: LARGE_OUTPUT });
      const value = (await run.untilStatus("completed")).output?.value as { text?: string } | undefined;
      assert.equal(value?.text?.length, LARGE_OUTPUT.length);
      assert.equal(value.text, LARGE_OUTPUT);
    },
  }),
] as const;

/** A payload whose native input is exactly so many bytes long, as JSON text in UTF-8. */
async function payloadOf(scene: SceneWith<never, never>, bytes: number): Promise<JsonObject> {
  const empty = Buffer.byteLength(JSON.stringify(await scene.input({ text: "" })));
  return { text: "x".repeat(bytes - empty) };
}

/** The order of keys is not part of a JSON value. */
function sorted(value: Json): Json {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== "object") return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, inner]) => [key, sorted(inner)]));
}
