import { stripVTControlCharacters } from "node:util";

/** How much of a log is held while its last error is looked for. */
const WINDOW_BYTES = 256 * 1024;
/** Lines after the last error that belong to it. */
const AFTER_ERROR = 3;

/** Every line begins with one: `2026-11-30T10:00:00.1234567Z `. */
const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z ?/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is removed
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f\ufeff]/g;

/** A piece of a log, for people and models. */
export interface LogExcerpt {
  readonly text: string;
  /** Whether lines before or after it were left out. */
  readonly truncated: boolean;
}

/** Log text without colours, control characters and timestamps. */
export function cleanLog(raw: string): string {
  return stripVTControlCharacters(raw)
    .split("\n")
    .map((line) => line.replace(CONTROLS, "").replace(TIMESTAMP, ""))
    .join("\n");
}

/**
 * The lines of a failed job's log that end at its last error. What comes after it are the clean-up steps,
 * which a plain tail would show instead.
 */
export async function excerpt(
  chunks: AsyncIterable<Uint8Array>,
  limits: { readonly lines: number; readonly bytes: number },
): Promise<LogExcerpt> {
  const { bytes, cut } = await lastBytes(chunks);
  const lines = cleanLog(new TextDecoder().decode(bytes)).trimEnd().split("\n");
  // The first line of a cut window is a part of one.
  if (cut) lines.shift();
  const lastError = lines.findLastIndex((line) => line.startsWith("##[error]"));
  const end = lastError === -1 ? lines.length : Math.min(lines.length, lastError + 1 + AFTER_ERROR);
  const begin = Math.max(0, end - limits.lines);
  const shown = lines.slice(begin, end);
  const kept = withinBytes(shown, limits.bytes);
  return {
    text: kept.join("\n"),
    truncated: cut || begin > 0 || end < lines.length || kept.length < shown.length || kept[0] !== shown[0],
  };
}

async function lastBytes(chunks: AsyncIterable<Uint8Array>): Promise<{ bytes: Buffer; cut: boolean }> {
  let held: Uint8Array[] = [];
  let size = 0;
  let cut = false;
  for await (const chunk of chunks) {
    held.push(chunk);
    size += chunk.length;
    // Twice the window before it is cut, so that a log of many small chunks is not copied again for each.
    if (size > 2 * WINDOW_BYTES) {
      const window = Buffer.concat(held).subarray(-WINDOW_BYTES);
      held = [window];
      size = window.length;
      cut = true;
    }
  }
  const bytes = Buffer.concat(held);
  return bytes.length > WINDOW_BYTES ? { bytes: bytes.subarray(-WINDOW_BYTES), cut: true } : { bytes, cut };
}

/** The last lines that fit; of a last line that alone is too long, its end. */
function withinBytes(lines: readonly string[], limit: number): string[] {
  const kept: string[] = [];
  let left = limit;
  for (const line of lines.toReversed()) {
    const size = Buffer.byteLength(line) + 1;
    if (size > left) {
      if (kept.length === 0)
        kept.push(
          Buffer.from(line)
            .subarray(-limit)
            .toString("utf8")
            .replace(/^\ufffd+/, ""),
        );
      break;
    }
    kept.push(line);
    left -= size;
  }
  return kept.reverse();
}
