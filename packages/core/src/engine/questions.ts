/** Checks of what clients answer. */
import { z } from "zod";
import type { Answer, Question } from "../contract/adapter.js";
import { WorkflowError } from "../contract/errors.js";
import { isJsonObject, type JsonObject } from "../contract/json.js";
import type { StoredQuestion } from "../contract/task.js";

type CheckedQuestion = Pick<
  StoredQuestion,
  "key" | "kind" | "message" | "schema" | "url" | "request" | "state"
>;

/** A question of an adapter or hook as if it were stored, with nothing left out. */
export function asOpen(question: Question): CheckedQuestion {
  const { key, message, kind = "form", schema = null, url = null, request = null } = question;
  return { key, message, kind, schema, url, request, state: "open" };
}

const ACTIONS = new Set(["accept", "decline", "cancel"]);

/**
 * The answers that belong to open questions, checked; all others are left out (2026-07-28: unknown, answered and
 * superseded keys are ignored).
 * @throws WorkflowError `invalid_arguments` naming the question, not what was answered
 */
export function checkAnswers(
  stored: readonly CheckedQuestion[],
  answers: Readonly<Record<string, unknown>>,
): Record<string, Answer> {
  const accepted: Record<string, Answer> = {};
  for (const question of stored) {
    if (question.state !== "open" || !Object.hasOwn(answers, question.key)) continue;
    accepted[question.key] = checkAnswer(question, answers[question.key]);
  }
  return accepted;
}

function checkAnswer(question: CheckedQuestion, answer: unknown): Answer {
  const refuse = (why: string) =>
    new WorkflowError("invalid_arguments", `Invalid answer to "${question.key}": ${why}`);
  if (!isJsonObject(answer)) throw refuse("it must be an object");
  if (question.kind === "sampling") {
    if (typeof answer.model !== "string" || answer.content === undefined) {
      throw refuse("it must be a CreateMessageResult with role, model and content");
    }
    return { action: "accept", content: answer };
  }
  const { action, content } = answer;
  if (typeof action !== "string" || !ACTIONS.has(action))
    throw refuse("action must be accept, decline or cancel");
  if (action !== "accept" || question.kind === "url") return { action: action as Answer["action"] };
  if (content !== undefined && !isJsonObject(content)) throw refuse("content must be an object");
  const problems = misfits(question.schema, content ?? {});
  if (problems.length > 0) throw refuse(problems.join("; "));
  return { action, ...(content !== undefined && { content }) } as Answer;
}

function misfits(schema: JsonObject | null, content: JsonObject): string[] {
  if (schema === null) return [];
  let checker: z.ZodType;
  try {
    checker = z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0]);
  } catch {
    // A schema that zod cannot read is the workflow's business; the engine will judge the answer.
    return [];
  }
  const parsed = checker.safeParse(content);
  if (parsed.success) return [];
  return parsed.error.issues
    .slice(0, 5)
    .map((issue) => `${issue.path.map(String).join(".") || "content"}: ${issue.message}`);
}
