import { lstat, readdir } from "node:fs/promises";
import path from "node:path";
import { type Answer, EngineError, isJsonObject, type Question } from "@taskferry/core";
import { errorCode, exists, readSlice, writeOnce } from "./files.js";
import { FILES } from "./records.js";

/** A name and not a path: it becomes the name of a file. */
const KEY = /^[A-Za-z0-9_-]{1,100}$/;
const QUESTIONS_LIMIT = 100;
const QUESTION_BYTES = 64 * 1024;

/** What a command asks now, and what it asks wrongly. */
export interface OpenQuestions {
  readonly questions: readonly Question[];
  /** For people: why a file is not a question. */
  readonly problem: string | undefined;
}

/** Reads `questions/`: each `<key>.json` there without a file of that name in `answers/` is open. */
export async function openQuestions(directory: string): Promise<OpenQuestions> {
  const folder = path.join(directory, FILES.questions);
  const questions: Question[] = [];
  let problem: string | undefined;
  for (const name of await namesIn(folder)) {
    // Drafts of the command begin with a dot.
    if (name.startsWith(".") || !name.endsWith(".json")) continue;
    const key = name.slice(0, -".json".length);
    if (!KEY.test(key)) {
      problem ??= "A question's file name may hold letters, digits, - and _, at most 100, before .json.";
      continue;
    }
    if (await exists(path.join(directory, FILES.answers, name))) continue;
    const question = parseQuestion(key, await readSlice(path.join(folder, name), 0, QUESTION_BYTES));
    if (typeof question === "string") problem ??= question;
    else if (questions.push(question) === QUESTIONS_LIMIT) break;
  }
  return { questions, problem };
}

/**
 * Writes the answer where the command looks for it.
 * @throws EngineError `gone` when the question is not open, or has another answer already
 */
export async function writeAnswer(directory: string, key: string, answer: Answer): Promise<void> {
  const file = KEY.test(key) ? path.join(directory, FILES.answers, `${key}.json`) : undefined;
  if (file === undefined || !(await isDirectory(path.dirname(file)))) throw notAsked();
  const asked = await exists(path.join(directory, FILES.questions, `${key}.json`));
  if (!asked || !writeOnce(file, `${JSON.stringify(answer)}\n`)) throw notAsked();
}

/** Half a JSON object is no JSON: a file that is still being written is simply not a question yet. */
function parseQuestion(key: string, bytes: Buffer | undefined): Question | string {
  const unusable = `The question ${key} cannot be asked:`;
  let asked: unknown;
  try {
    asked = JSON.parse(bytes?.toString("utf8") ?? "");
  } catch {
    return `${unusable} it is not JSON.`;
  }
  if (!isJsonObject(asked) || typeof asked.message !== "string" || asked.message === "") {
    return `${unusable} it needs a "message".`;
  }
  const { message, schema, url } = asked;
  if (typeof url === "string") return { key, message, kind: "url", url };
  if (schema === undefined || schema === null) return { key, message };
  return isJsonObject(schema) ? { key, message, schema } : `${unusable} its "schema" must be an object.`;
}

async function namesIn(folder: string): Promise<string[]> {
  if (!(await isDirectory(folder))) return [];
  return (await readdir(folder)).sort();
}

/** A link in its place is not followed. */
async function isDirectory(folder: string): Promise<boolean> {
  try {
    return (await lstat(folder)).isDirectory();
  } catch (error) {
    if (errorCode(error) === "ENOENT") return false;
    throw error;
  }
}

function notAsked(): EngineError {
  return new EngineError({ kind: "gone", code: "NotAsked", message: "This question is no longer open." });
}
