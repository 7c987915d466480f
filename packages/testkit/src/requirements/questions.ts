import assert from "node:assert/strict";
import { type Answer, isJsonObject, type JsonObject, type Question } from "@taskferry/core";
import { requirement } from "../requirement.js";

/** A word that comes back when an answer's content arrives. */
const MARK = "kit-answer-8f2e";

const FLAT = ["string", "number", "integer", "boolean"];

/** A run asks, a person answers. */
export const questions = [
  requirement({
    id: "questions.open",
    behaviour: "questions",
    says: "A run that waits for an answer is `input_required` with the question",
    source: "RunState.questions",
    drive: ["ask"],
    async check(scene) {
      const run = await scene.start();
      await scene.drive.ask(run);
      const isAsking = ({ status, questions = [] }: { status: string; questions?: readonly Question[] }) =>
        status === "input_required" && questions.length > 0;
      await run.until("input_required with a question", isAsking);
    },
  }),
  requirement({
    id: "questions.well-formed",
    behaviour: "questions",
    says: "A question has a key of 1 to 200 characters, a message, and what its kind needs (a form: a flat schema)",
    source: "Question",
    drive: ["ask"],
    async check(scene) {
      assertWellFormed((await scene.startAsking()).question);
    },
  }),
  requirement({
    id: "questions.both",
    behaviour: "questions",
    says: "Two questions that are open at once are both told, under two keys",
    source: "RunState.questions",
    drive: ["ask"],
    async check(scene) {
      const run = await scene.start();
      await scene.drive.ask(run);
      await scene.drive.ask(run);
      await run.until(
        "two questions",
        ({ questions = [] }) => new Set(questions.map((q) => q.key)).size === 2,
      );
    },
  }),
  requirement({
    id: "questions.closed",
    behaviour: "questions",
    says: "A question that was closed elsewhere is no longer told",
    source: "RunState.questions",
    drive: ["ask", "withdraw"],
    async check(scene) {
      const { run } = await scene.startAsking();
      await scene.drive.withdraw(run);
      await run.until("no question", ({ questions = [] }) => questions.length === 0);
    },
  }),
  requirement({
    id: "questions.answered",
    behaviour: "questions",
    says: "An answer reaches the engine once, with its content",
    source: "WorkflowAdapter.answer",
    drive: ["ask", "answers"],
    adapter: ["answer"],
    async check(scene) {
      const { run, question } = await scene.startAsking();
      const answer = acceptance(question);
      await scene.adapter.answer(run.ref, question.key, answer, { signal: scene.signal });
      const received = await scene.drive.answers(run);
      assert.equal(received.length, 1, `${received.length} answers arrived`);
      assert.equal(received[0]?.accepted, true, "it arrived as declined");
      const carriesMark = JSON.stringify(answer.content).includes(MARK);
      if (carriesMark) assert.ok(JSON.stringify(received).includes(MARK), "it arrived without its content");
    },
  }),
  requirement({
    id: "questions.declined",
    behaviour: "questions",
    says: "A declined question reaches the engine as declined",
    source: "Answer.action",
    drive: ["ask", "answers"],
    adapter: ["answer"],
    async check(scene) {
      const { run, question } = await scene.startAsking();
      await scene.adapter.answer(run.ref, question.key, { action: "decline" }, { signal: scene.signal });
      const received = await scene.drive.answers(run);
      assert.deepEqual(
        received.map((answer) => answer.accepted),
        [false],
      );
    },
  }),
  requirement({
    id: "questions.answered-twice",
    behaviour: "questions",
    says: "A second answer to the same question is refused as `gone` and does not reach the engine",
    source: "WorkflowAdapter.answer",
    drive: ["ask", "answers"],
    adapter: ["answer"],
    async check(scene) {
      const { run, question } = await scene.startAsking();
      await scene.adapter.answer(run.ref, question.key, acceptance(question), { signal: scene.signal });
      const count = (await scene.drive.answers(run)).length;
      const { verdict } = await scene.refusal(
        scene.adapter.answer(run.ref, question.key, acceptance(question), { signal: scene.signal }),
      );
      assert.equal(verdict.kind, "gone");
      assert.equal((await scene.drive.answers(run)).length, count, "the second answer arrived");
    },
  }),
  requirement({
    id: "questions.stale",
    behaviour: "questions",
    says: "An answer to a question that was closed elsewhere is refused as `gone`",
    source: "WorkflowAdapter.answer",
    drive: ["ask", "withdraw"],
    adapter: ["answer"],
    async check(scene) {
      const { run, question } = await scene.startAsking();
      await scene.drive.withdraw(run);
      const { verdict } = await scene.refusal(
        scene.adapter.answer(run.ref, question.key, acceptance(question), { signal: scene.signal }),
      );
      assert.equal(verdict.kind, "gone");
    },
  }),
  requirement({
    id: "questions.new-key",
    behaviour: "questions",
    says: "The next question has a key that no earlier question of the run had",
    source: "Question.key",
    drive: ["ask"],
    adapter: ["answer"],
    async check(scene) {
      const { run, question: first } = await scene.startAsking();
      await scene.adapter.answer(run.ref, first.key, acceptance(first), { signal: scene.signal });
      await scene.drive.ask(run);
      await run.untilAsked(({ key }) => key !== first.key);
    },
  }),
] as const;

/** An answer that fits the question: as simple as its schema allows. */
export function acceptance({ kind = "form", schema }: Question): Answer & { content: JsonObject } {
  if (kind === "url") return { action: "accept", content: {} };
  if (kind === "sampling") {
    const content = { role: "assistant", model: "kit", content: { type: "text", text: MARK } };
    return { action: "accept", content };
  }
  const fields = Object.entries(isJsonObject(schema?.["properties"]) ? schema["properties"] : {});
  return {
    action: "accept",
    content: Object.fromEntries(
      fields.map(([name, field]) => [name, fill(isJsonObject(field) ? field : {})]),
    ),
  };
}

function fill(field: JsonObject) {
  const options = field["enum"];
  if (Array.isArray(options)) return options[0];
  if (field["const"] !== undefined) return field["const"];
  if (field["type"] === "boolean") return true;
  if (field["type"] === "integer" || field["type"] === "number") return Number(field["minimum"] ?? 1);
  return MARK;
}

function assertWellFormed({ key, message, kind = "form", schema, url, request }: Question): void {
  assert.ok(key.length >= 1 && key.length <= 200, `a key of ${key.length} characters`);
  assert.ok(message.trim(), "no message");
  if (kind === "url") assert.ok(url !== undefined && URL.canParse(url), "no absolute URL");
  if (kind === "sampling") assert.ok(request, "no sampling request");
  if (kind !== "form" || schema === undefined) return;
  assert.equal(schema["type"], "object", "the schema is not an object");
  for (const [name, field] of Object.entries(schema["properties"] ?? {}) as [string, JsonObject][]) {
    const isFlat = FLAT.includes(String(field["type"])) || "enum" in field || "oneOf" in field;
    // The one kind of list that MCP elicitation knows: several of an enum.
    const isChoice =
      field["type"] === "array" && isJsonObject(field["items"]) && !("properties" in field["items"]);
    assert.ok(isFlat || isChoice, `${name} is of type ${String(field["type"])}: a form is flat`);
  }
}
