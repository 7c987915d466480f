import type { Answer, JsonObject, Question } from "@taskferry/core";
import { EngineError, isJsonObject } from "@taskferry/core";
import { type Callback, callbackUrl, listCallbacks, payloadBody, sendCallback } from "./callbacks.js";
import type { Connection } from "./connection.js";
import { discreet } from "./errors.js";
import { currentSteps, type Execution } from "./execution.js";
import { decodePart } from "./names.js";

/** What is asked, as the configuration or the workflow itself says it. */
export interface QuestionText {
  readonly message: string;
  /** A flat JSON Schema object. Absent: accept or decline, nothing to fill in. */
  readonly schema?: JsonObject;
  /** Send the client to this page instead of showing a form. */
  readonly url?: string;
}

/** How waiting callbacks become questions. */
export interface QuestionOptions {
  /** What is asked, by the name of the step that waits (`currentSteps`); `"*"` for any other. */
  readonly steps?: Readonly<Record<string, QuestionText>>;
  /** What is asked, in code. Tried first; `undefined` falls through to the workflow's own words and to `steps`. */
  readonly describe?: (callback: Callback, execution: Execution) => QuestionText | undefined;
  /** Where a callback is called. It is sent a bearer token, so name nothing but Google's host or your own proxy. @default the documented path */
  readonly callbackUrl?: (callback: Callback) => string;
  /**
   * What the callback is sent. `answer`: `{ action, content }`, so that the workflow can tell a refusal. `content`: the
   * filled-in fields alone, for workflows that were there before; a refusal is still `{ action }`.
   * @default "answer"
   */
  readonly payload?: "answer" | "content" | ((answer: Answer) => JsonObject);
}

/** What the execution waits to be told. */
export async function openQuestions(
  connection: Connection,
  name: string,
  execution: Execution,
  options: QuestionOptions,
  signal: AbortSignal,
): Promise<readonly Question[]> {
  const waits = openWaits(await listCallbacks(connection, name, signal));
  return waits.map(({ key, callback, note }) => {
    const text = options.describe?.(callback, execution) ??
      note ??
      configured(execution, options, waits.length) ?? { message: defaultMessage(callback, execution) };
    return { key, ...questionOf(text) };
  });
}

/**
 * Calls the callback that a question is about. A callback that nothing waits for any more (answered elsewhere, timed
 * out, delivered by an earlier try whose response was lost) is gone.
 */
export async function deliverAnswer(
  connection: Connection,
  name: string,
  questionKey: string,
  answer: Answer,
  options: QuestionOptions,
  signal: AbortSignal,
): Promise<void> {
  const waits = openWaits(await listCallbacks(connection, name, signal));
  const callback = waits.find(({ key }) => key === questionKey)?.callback;
  if (callback === undefined) {
    throw new EngineError({
      kind: "gone",
      code: "NOT_WAITING",
      message: "Nothing waits for this answer any more",
    });
  }
  const url = options.callbackUrl?.(callback) ?? callback.url ?? callbackUrl(connection, name, callback);
  const payload = answerPayload(answer, options);
  try {
    await sendCallback(connection, { url, method: callback.method, payload, signal });
  } catch (error) {
    throw discreet(error);
  }
}

/** A callback that a step waits for, and what the workflow says about it. */
interface Wait {
  readonly key: string;
  readonly callback: Callback;
  readonly note: Note | undefined;
}

function openWaits(callbacks: readonly Callback[]): readonly Wait[] {
  const notes = callbacks
    .flatMap(({ availablePayloads }) => availablePayloads.map(parseNote))
    .filter((note) => !!note);
  const waiting = callbacks.filter(({ waiters }) => waiters > 0);
  return waiting.map((callback) => {
    // The last note counts: an endpoint may be waited for again, with another question.
    const note = notes.findLast(({ callbackId }) => callbackId === callback.id);
    const key = note?.id === undefined ? callback.id : `${callback.id}.${note.id}`;
    return { key: key.slice(0, 200), callback, note };
  });
}

function questionOf({ message, schema, url }: QuestionText): Omit<Question, "key"> {
  if (url !== undefined) return { message, kind: "url", url };
  return schema === undefined ? { message } : { message, schema };
}

/** The list of callbacks does not say which step waits for which, so a step's words are used only when one waits. */
function configured(
  execution: Execution,
  { steps }: QuestionOptions,
  waiting: number,
): QuestionText | undefined {
  const named = currentSteps(execution).filter((step) => steps?.[step] !== undefined);
  const only = waiting === 1 && named.length === 1 ? named[0] : undefined;
  return only === undefined ? steps?.["*"] : steps?.[only];
}

function defaultMessage({ method }: Callback, execution: Execution): string {
  const steps = currentSteps(execution);
  const where = steps.length === 0 ? "" : ` at ${steps.length === 1 ? "step" : "steps"} ${steps.join(", ")}`;
  return `The workflow waits${where} to be told to go on (${method} callback).`;
}

interface Note extends QuestionText {
  readonly callbackId: string;
  readonly id?: string;
}

/**
 * A workflow's own words. It cannot write anything that an outsider may read while it runs, except by calling a second
 * callback endpoint of its own: what no step waits for stays in that endpoint's `availablePayloads`.
 * The note is `{ "taskferry": { "callback": <url of the endpoint that is waited for>, "message", "schema"?, "url"?, "id"? } }`.
 */
function parseNote(payload: string): Note | undefined {
  const body = payloadBody(payload);
  const note = isJsonObject(body) ? body["taskferry"] : undefined;
  if (!isJsonObject(note)) return undefined;
  const { callback, message, schema, url, id } = note;
  if (typeof callback !== "string" || typeof message !== "string") return undefined;
  return {
    // Only which endpoint is meant is taken from the note. Where the token goes is never the workflow's choice.
    callbackId: decodePart(callback.split("/").at(-1) ?? ""),
    message,
    ...(isJsonObject(schema) && { schema }),
    ...(typeof url === "string" && { url }),
    ...((typeof id === "string" || typeof id === "number") && { id: String(id) }),
  };
}

function answerPayload(answer: Answer, { payload = "answer" }: QuestionOptions): JsonObject {
  if (typeof payload === "function") return payload(answer);
  if (payload === "content" && answer.action === "accept") return answer.content ?? {};
  return { action: answer.action, ...(answer.content && { content: answer.content }) };
}
