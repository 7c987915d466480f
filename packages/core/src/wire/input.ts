/** Questions as MCP input requests, and which of them a client can be asked. */
import { isJsonObject, type JsonObject } from "../contract/json.js";
import type { StoredQuestion } from "../contract/task.js";

/** One server-to-client request. */
export interface InputRequest {
  readonly method: "elicitation/create" | "sampling/createMessage";
  readonly params: JsonObject;
}

type Askable = Pick<StoredQuestion, "key" | "kind" | "message" | "schema" | "url" | "request">;

/** Whether this client's declared capabilities fit the question. An empty `elicitation` means forms. */
export function canAsk(capabilities: JsonObject | undefined, question: Pick<Askable, "kind">): boolean {
  if (question.kind === "sampling") return isJsonObject(capabilities?.sampling);
  const elicitation = capabilities?.elicitation;
  if (!isJsonObject(elicitation)) return false;
  if (question.kind === "url") return isJsonObject(elicitation.url);
  return isJsonObject(elicitation.form) || Object.keys(elicitation).length === 0;
}

/** The request that puts a question to a client. */
export function encodeQuestion(question: Askable): InputRequest {
  if (question.kind === "sampling") {
    return { method: "sampling/createMessage", params: question.request ?? {} };
  }
  if (question.kind === "url") {
    const { message, url, key } = question;
    return {
      method: "elicitation/create",
      params: { mode: "url", message, url: url ?? "", elicitationId: key },
    };
  }
  return {
    method: "elicitation/create",
    params: {
      mode: "form",
      message: question.message,
      requestedSchema: question.schema ?? { type: "object", properties: {} },
    },
  };
}

/** `inputRequests` of 2026-07-28: each question's request, by its key. */
export function encodeInputRequests(questions: readonly Askable[]): JsonObject {
  return Object.fromEntries(
    questions.map((question) => [question.key, encodeQuestion(question) as unknown as JsonObject]),
  );
}

/** The open ones of a task's questions. */
export function openQuestions(questions: readonly StoredQuestion[]): readonly StoredQuestion[] {
  return questions.filter((question) => question.state === "open");
}

/** The open ones that this client can be asked. */
export function askableQuestions(
  questions: readonly StoredQuestion[],
  capabilities: JsonObject | undefined,
): readonly StoredQuestion[] {
  return openQuestions(questions).filter((question) => canAsk(capabilities, question));
}
