import path from "node:path";
import { EngineError, type LogPage } from "@taskferry/core";
import { readSlice } from "./files.js";
import { FILES } from "./records.js";
import { livenessOf } from "./state.js";
import { incompleteUtf8 } from "./text.js";

const PAGE_BYTES = 64 * 1024;

/** One page of the log. The cursor is the byte at which the next one begins, always at the start of a character. */
export async function logPage(directory: string, cursor: string | undefined): Promise<LogPage> {
  if (cursor !== undefined && !/^\d{1,15}$/.test(cursor)) {
    throw new EngineError({
      kind: "rejected",
      code: "InvalidCursor",
      message: "This is no cursor of this log.",
    });
  }
  const from = Number(cursor ?? 0);
  // Asked before the bytes are read: what a run writes before its end is then among them.
  const { phase } = await livenessOf(directory);
  const complete = phase === "ended" || phase === "lost" || phase === "unsupervised";
  const bytes = (await readSlice(path.join(directory, FILES.log), from, PAGE_BYTES)) ?? Buffer.alloc(0);
  const isLast = complete && bytes.length < PAGE_BYTES;
  const whole = isLast ? bytes : bytes.subarray(0, bytes.length - incompleteUtf8(bytes));
  const text = whole.toString("utf8");
  return isLast ? { text } : { text, cursor: String(from + whole.length) };
}
